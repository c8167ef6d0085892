//go:build !sandboxweak

package egress

const canWeaken = false

func weaken(defence) off { return off{} }
