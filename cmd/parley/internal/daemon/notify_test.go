package daemon

import (
	"net"
	"path/filepath"
	"testing"
)

func TestManagerIsToldThatTheDaemonIsReady(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	if err := tellManager("READY=1"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	if n, err := l.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("it heard %q, %v", buf[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := tellManager("READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}
