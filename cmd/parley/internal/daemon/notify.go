// What systemd is told.

package daemon

import (
	"net"
	"os"
)

// tellManager tells systemd how the daemon is (sd_notify(3)); without one it does nothing.
func tellManager(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"}) // a leading @ is an abstract one in Go too
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}
