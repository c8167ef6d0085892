// The stored form of a doubt: the one place that knows it.

package store

import "parley/workspace"

// How a part's doubt is stored: in the column error, in place of the words for what went wrong. The sentences are what
// databases hold since the first version and never change; what people read is workspace.Doubt.Error.
var storedDoubts = map[workspace.Doubt]string{
	workspace.DoubtEnded:   "the gateway ended while it was being sent",
	workspace.DoubtMarked:  "sent once more, marked",
	workspace.DoubtDropped: "may have been sent; dropped as configured",
	workspace.DoubtTwice:   "twice without an answer from the network",

	workspace.DoubtPlaceholder: "carried no answer",
}

// storeDoubt is what the column holds. Of a doubt without a sentence these are the words, by which state it is known;
// words that happen to be a sentence of Parley's are changed, so that nothing that a network says becomes a doubt.
func storeDoubt(d workspace.Doubt, words string) string {
	if text, ok := storedDoubts[d]; ok {
		return text
	}
	if _, clash := readDoubt(words); clash {
		return words + "."
	}
	return words
}

// readDoubt is the doubt that the column holds, if it does not hold words.
func readDoubt(stored string) (d workspace.Doubt, ok bool) {
	for d, text := range storedDoubts {
		if stored == text {
			return d, true
		}
	}
	return "", false
}

// doubtOf splits what the column holds of a part into its doubt and what went wrong.
func doubtOf(state workspace.PartState, stored string) (d workspace.Doubt, words string) {
	if d, ok := readDoubt(stored); ok {
		return d, ""
	}
	if state == workspace.PartUnknown {
		return workspace.DoubtUnanswered, stored
	}
	return "", stored
}
