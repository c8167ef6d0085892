package setup

// At has a test told how far a change has come.
func (s *Setup) At(f func(step string)) { s.at = f }
