package anthropic

import (
	"errors"
	"strconv"
	"strings"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
	"parley/workspace/lazy"
)

// quirk is what is left out of a request because a server refused it.
type quirk uint32

const (
	noCache    quirk = 1 << iota // cache_control, which some copies of the API do not know
	noPictures                   // images and PDFs: the model sees none, or one of them cannot be read
	sightless                    // the server said that the model sees none
	noThoughts                   // thinking of earlier calls, whose signature the server does not accept
	adaptive                     // thinking is adaptive with an effort, not a budget of tokens
	noXhigh                      // knows no effort xhigh
	noThinking                   // refuses to be told how hard to think
)

// lasting quirks are remembered; the others are those of one conversation.
const lasting = noCache | sightless | adaptive | noXhigh | noThinking

// errLimit is in the words "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens".
var errLimit = lazy.Regexp(`max_tokens: (\d+) > (\d+)`)

// adapt says how to ask again after err.
func (m *Model) adapt(err error, req llm.Request, q quirk) (next quirk, ok bool) {
	var e *llm.Error
	var s *wire.ServerError
	if !errors.As(err, &e) || !errors.As(err, &s) || e.Kind != llm.Rejected || e.Status != 400 {
		return 0, false
	}
	said := strings.ToLower(s.Text)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	if found := errLimit().FindStringSubmatch(said); found != nil {
		sent, most := number(found[1]), number(found[2])
		if most > 0 && most < sent {
			m.limit.Store(most)
			return q, true
		}
		return 0, false
	}
	asked := req.Think != "" && q&noThinking == 0
	switch {
	case asked && q&adaptive == 0 && has("adaptive"):
		return q | adaptive, true
	case asked && q&noXhigh == 0 && req.Think == "xhigh" && has("effort"):
		return q | noXhigh, true
	case asked && has("budget_tokens", "effort", "output_config", "thinking.type", "does not support thinking", "thinking is not supported"):
		return q | noThinking, true
	case q&noThoughts == 0 && has("thinking", "signature"):
		return q | noThoughts, true
	case asked && has("thinking"):
		return q | noThinking, true
	case q&noCache == 0 && has("cache_control"):
		return q | noCache, true
	case q&(noPictures|sightless) == 0 && hasPictures(req.Messages) && has("image", "document", "pdf", "vision", "media_type"):
		if has("support") {
			return q | sightless, true
		}
		return q | noPictures, true
	}
	return 0, false
}

func hasPictures(msgs []llm.Message) bool {
	for _, msg := range msgs {
		for _, c := range msg.Content {
			if pictured(c) {
				return true
			}
		}
	}
	return false
}

// number reads digits; 0: there are too many of them.
func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0
	}
	return n
}
