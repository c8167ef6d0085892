//go:build sandboxweak

package egress

const canWeaken = true

func weaken(d defence) off { return off{d} }
