package sandbox

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Init()
	os.Exit(m.Run())
}

func TestTry(t *testing.T) {
	n := newNS(Config{Backend: "ns"}, Deps{})
	b := time.Now()
	r := n.Probe(t.Context())
	fmt.Println(time.Since(b), r)
	for _, c := range r.Failed() {
		t.Error(c)
	}
	for _, x := range r.Reasons {
		t.Log(x)
	}
}
