package cell

const sysSeccomp = 277
