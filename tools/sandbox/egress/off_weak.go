//go:build sandboxweak

package egress

// off holds the defences that a proxy of the tests does without.
type off struct{ without defence }

// has says whether it does without one of these.
func (o off) has(d defence) bool { return o.without&d != 0 }
