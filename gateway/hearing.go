package gateway

import (
	"context"
	"strings"

	"parley/agentloop"
	"parley/workspace"
)

// hearing turns recordings into text; nil: nothing is configured that can.
type hearing interface {
	Transcribe(ctx context.Context, name, mime, path string) (text string, err error)
}

// Sentences about recordings, for people.
const howToHear = "I can't listen to voice messages yet: the owner can set `transcription` in the configuration (docs/models.md says how)."

// listen transcribes a recording once: what was heard is kept with its message before anything else is done with it.
func (f *fetcher) listen(ctx context.Context, h hearing, it *item) (text string, ok bool) {
	if h == nil {
		it.unheard, it.unasked = "no transcription is configured", true
		return "", false
	}
	return "", false
}

// heard is a recording as the model gets it. A voice message is its sender's own words; any other recording is material.
func heard(it *item, facts []string, said string) string {
	what := label(it, append(facts, "transcribed"))
	if it.a.Kind == "voice" && !it.quoted {
		return what + "\n" + said
	}
	return what + "\n" + agentloop.Outside("transcript", said)
}

// notice is what the person is told of a recording that could not be transcribed: of one thing to set up, once a session.
func (it *item) notice() fetchNotice {
	if it.unasked {
		return fetchNotice{key: "hearing", in: it.in, text: howToHear}
	}
	return fetchNotice{in: it.in, key: "", text: "I could not listen to your recording: " + strings.TrimSuffix(it.unheard, ".") + "."}
}

var _ = workspace.Text
