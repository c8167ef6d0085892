package all_test

import (
	"os/exec"
	"strings"
	"testing"
)

// What a binary holds decides under which licence it can be given away: README.md.
func TestBuildWithoutWhatsAppHoldsNoneOfItsLibraries(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]bool{"nowhatsapp": false, "": true} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", tag, "parley/cmd/parley").CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		for _, module := range []string{"go.mau.fi/whatsmeow", "go.mau.fi/libsignal"} {
			if got := strings.Contains(string(out), module+"\n") || strings.Contains(string(out), module+"/"); got != want {
				t.Errorf("with the tag %q: %s is in the binary: %v, want %v", tag, module, got, want)
			}
		}
	}
}
