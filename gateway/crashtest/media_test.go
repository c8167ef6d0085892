//go:build !race

package crashtest

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// recording is one as far as its first bytes say.
var recording = []byte("OggS\x00\x02" + strings.Repeat("\x00", 22) + "OpusHead\x01\x01" + strings.Repeat("sound", 100))

// fetched kills the daemon between the fetch of a file and the commit that takes its message: it fetches it again, or finds
// it; what was transcribed is not transcribed again; the answer comes once.
func fetched(t *testing.T, _ row) {
	for _, c := range []struct {
		point   string
		fetches int64 // over both lives
	}{
		{"commit accept", 2}, // the fetch has not begun, the message comes again
		{"committed accept", 2},
		{"commit hear", 2},
		{"committed hear", 2},
		{"commit begin", 2},
		{"committed begin", 1},
	} {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			s := newStory(t, testProgram, llmtest.Echo, "")
			s.llm.Hear(func(*llmtest.Audio) llmtest.Reply { return llmtest.Reply{Text: "buy milk"} })
			s.add("transcription: {model: w, base_url: " + s.llm.URL + ", api_key: sk-test-canary}")
			ana := s.person(11)
			s.start(childPoint + "=" + c.point + "#1")
			s.tg.Message(telegramtest.In{Chat: ana.ID, From: user(11), Text: "remember", File: telegramtest.File{Type: "voice", MIME: "audio/ogg", Data: recording}})
			s.ends(c.point)
			s.start()
			got := texts(s.messages(ana, 1))
			if len(got) != 1 || !strings.Contains(got[0], "remember") || !strings.HasSuffix(got[0], "inbox/voice.ogg, audio/ogg, 538 bytes, transcribed]\n\nbuy milk") {
				t.Errorf("answers %q", got)
			}
			heard := 1
			if c.point == "commit hear" { // the answer had not been kept
				heard = 2
			}
			if n := len(s.llm.Heard()); n != heard {
				t.Errorf("transcribed %d times, want %d", n, heard)
			}
			if n := s.tg.View().Calls("getFile"); n > c.fetches {
				t.Errorf("fetched %d times, want at most %d", n, c.fetches)
			}
			if files, err := filepath.Glob(filepath.Join(s.dataDir(), "agents/assistant/work/*/inbox/*")); err != nil || len(files) != 1 {
				t.Errorf("files %q, %v, want one", files, err)
			}
		})
	}
}
