package control

// Refusal is an error with a name of its own: a client that knows it can offer the way on. Its sentence and its kind are those of Err.
type Refusal struct {
	Code     string // such as config_changed
	Problems any    // what is wrong one by one; nil: nothing is told
	Err      error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }
