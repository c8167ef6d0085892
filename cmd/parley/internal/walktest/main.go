// Command walktest is what the walks through WebChat need beside the binary (channels/webchat/ui/e2e): data that is too
// much to be said by hand, and fakes of networks that a walk asks for over HTTP. It is built without the race detector,
// since it is scenery.
//
//	walktest long DIR   writes a data directory with a transcript of 10,000 entries and 1,000 sessions
//	walktest fakes      prints its address, and serves until its standard input ends
package main

import (
	"fmt"
	"os"
)

func main() {
	err := fmt.Errorf("usage: walktest long DIR | fakes")
	switch {
	case len(os.Args) == 3 && os.Args[1] == "long":
		err = writeLong(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "fakes":
		err = serveFakes()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
