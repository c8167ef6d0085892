package whatsapptest

import "go.mau.fi/libsignal/logger"

// Quiet has libsignal log nothing. Call it in TestMain: the library makes its logger, a global, at first use and without
// a lock, which is a race as soon as two clients are in one process.
func Quiet() {
	var none logger.Loggable = silent{}
	logger.Setup(&none)
}

type silent struct{}

func (silent) Debug(string, string)   {}
func (silent) Info(string, string)    {}
func (silent) Warning(string, string) {}
func (silent) Error(string, string)   {}
func (silent) Configure(string)       {}
