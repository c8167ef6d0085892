package cell

const sysSeccomp = 317
