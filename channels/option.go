package channels

// OptionError says that one option of a channel's section cannot be used. The text of Err follows the name.
type OptionError struct {
	Name string // as it stands in the file
	Err  error
}

func (e *OptionError) Error() string { return e.Name + " " + e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

// Option is the name, for whoever knows in which line it stands.
func (e *OptionError) Option() string { return e.Name }
