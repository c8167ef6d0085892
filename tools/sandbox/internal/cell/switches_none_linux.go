//go:build !sandboxweak

package cell

// CanWeaken says whether this program was built with the switches. The program that ships is not.
const CanWeaken = false

// Switches holds nothing, and nothing of it goes over the wire: there is no launcher but the whole one.
type Switches struct{}

// Weaken gives the only launcher that there is.
func Weaken(Weakness) Switches { return Switches{} }

// Has is false; the compiler drops what stands behind it.
func (Switches) Has(Weakness) bool { return false }

func (*Switches) fields(wire) {}
