//go:build sandboxweak

package cell

// CanWeaken says whether this program was built with the switches: it was, and is for tests alone.
const CanWeaken = true

// Switches holds the defences that a launcher does without.
type Switches struct{ off Weakness }

// Weaken gives a launcher that does without these defences.
func Weaken(w Weakness) Switches { return Switches{w} }

// Has says whether the launcher does without one of these.
func (s Switches) Has(w Weakness) bool { return s.off&w != 0 }

func (s *Switches) fields(w wire) { whole(w, &s.off) }
