package whatsapptest

import "go.mau.fi/libsignal/logger"

// Quiet has libsignal log nothing. Call it in TestMain: the library makes its logger, a global, at first use and without
// a lock, which is a race as soon as two clients are in one process.
func Quiet() {
	var none logger.Loggable = silent{}
	logger.Setup(&none)
}

// Stuck is the function that goleak has to ignore. When a line ends while a frame comes in, whatsmeow's reader offers the frame to
// somebody who has gone, and waits for good: it does not listen to the end of its context there. Nothing outside can free it.
const Stuck = "go.mau.fi/whatsmeow/socket.(*FrameSocket).frameComplete"

type silent struct{}

func (silent) Debug(string, string)   {}
func (silent) Info(string, string)    {}
func (silent) Warning(string, string) {}
func (silent) Error(string, string)   {}
func (silent) Configure(string)       {}
