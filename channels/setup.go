package channels

// Setup is how a person gets an account of a network and connects it, for forms and terminals. A network without a title is not
// offered.
type Setup struct {
	Title  string
	Name   string   // what its channel is called in a configuration, when nobody says otherwise
	Steps  []string // what to do at the network, in order: a sentence or two of Markdown each
	Links  []Link
	Fields []SetupField // what comes of it
	After  []string     // what to do once the channel is configured
	QR     bool         // the account is linked by a code that the running channel shows, and has no credential
}

// Link is a page outside.
type Link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// SetupField is an option of the channel that a person has to give.
type SetupField struct {
	Key         string `json:"key"` // in the configuration
	Title       string `json:"title"`
	Secret      bool   `json:"secret"`
	Needed      bool   `json:"needed"`
	Help        string `json:"help"`
	Placeholder string `json:"placeholder"` // what one looks like
}
