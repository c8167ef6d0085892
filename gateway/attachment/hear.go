package attachment

import (
	"context"
	"errors"
	"io"

	"parley/agentloop"
	"parley/agentloop/llm"
	"parley/workspace"
	"parley/workspace/media"
)

// Transcriber turns recordings into text.
type Transcriber interface {
	Transcribe(ctx context.Context, name, mime string, sound io.ReadSeeker) (text string, err error)
}

const howToHear = "I can't listen to voice messages yet: the owner can set `transcription` in the configuration (docs/models.md says how)."

// listen transcribes a recording once: what was heard is kept with its message before anything else is done with it, so
// that neither a crash nor another try asks the server again.
func (f *Fetcher) listen(ctx context.Context, h Transcriber, it *item) (text string, ok bool) {
	if said, ok := it.in.Data.Heard[it.n]; ok {
		return said, true
	}
	switch {
	case h == nil:
		it.unheard, it.unasked = "no transcription is configured", true
		return "", false
	case !media.Sound(it.content.MIME):
		it.unheard = "it is not a recording that can be read"
		return "", false
	}
	said, err := f.transcribe(ctx, h, it.content)
	switch {
	case err != nil:
		f.log.Warn("recording cannot be transcribed", "channel", it.in.Data.Channel, "input", it.in.ID, "err", err)
		it.unheard = unheard(err)
		return "", false
	case said == "":
		it.unheard = "nothing was understood in it"
		return "", false
	}
	kept, err := f.store.Hear(it.in.ID, it.n, said)
	if err != nil {
		f.log.Warn("transcript cannot be kept with its message", "input", it.in.ID, "err", err)
		return said, true // it was stopped, or the commit of the turn will fail as well
	}
	return kept, true
}

func (f *Fetcher) transcribe(ctx context.Context, h Transcriber, c workspace.Content) (string, error) {
	file, err := f.blobs.Open(c.Blob)
	if err != nil {
		return "", err
	}
	defer file.Close()
	// By a name of Parley's: the server goes by the extension, and what the sender calls it is nobody's business there.
	return h.Transcribe(ctx, media.Name("", "recording", c.MIME), c.MIME, file)
}

// unheard is what people are told of a failed transcription; the log has the rest.
func unheard(err error) string {
	switch llm.KindOf(err) {
	case llm.Auth:
		return "the transcription service refuses its key"
	case llm.Limited, llm.Overload:
		return "the transcription service is busy or out of reach"
	case llm.TimedOut, llm.Cancelled:
		return "the transcription took too long"
	case llm.Rejected, llm.Overflow:
		return "the transcription service does not take it"
	}
	if errors.Is(err, workspace.ErrNotFound) {
		return "the recording is gone"
	}
	return "the transcription failed"
}

// heard is a transcript as it stands in the conversation, behind the label of its recording. A voice message is its
// sender's own words; any other recording is material.
func heard(it *item, said string) string {
	if it.a.Kind != "voice" || it.quoted {
		said = agentloop.Outside("transcript", said)
	}
	if it.in.Text != "" {
		return "\n" + said // a line of its own wherever texts are joined
	}
	return said
}

// notice is what the person is told of a recording that could not be transcribed: of what is to be set up, once a session.
func (it *item) notice() Notice {
	if it.unasked {
		return Notice{Key: "Transcriber", In: it.in, Text: howToHear}
	}
	return Notice{Key: "", In: it.in, Text: "I could not listen to your recording: " + it.unheard + "."}
}
