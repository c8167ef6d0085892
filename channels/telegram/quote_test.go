package telegram

import (
	"encoding/json"
	"testing"
)

// A reply to somebody's picture brings the picture; a reply to one of Parley's does not bring it back.
func TestReplyBringsTheFilesOfWhatItAnswers(t *testing.T) {
	t.Parallel()
	s := &identity{}
	s.ID, s.account = 4242, "4242"
	read := func(from string) int {
		got := s.read(json.RawMessage(`{"update_id":1,"message":{"message_id":2,"date":1,"chat":{"id":5,"type":"private"},"from":{"id":5,"first_name":"Ana"},"text":"what is it?",
			"reply_to_message":{"message_id":1,"date":1,"chat":{"id":5,"type":"private"},"from":{"id":` + from + `,"first_name":"X"},"photo":[
			{"file_id":"small","width":9,"height":9},{"file_id":"big","width":90,"height":90}]}}}`))
		if got.in.Quote == nil || !got.keep {
			t.Fatalf("%+v", got)
		}
		for _, a := range got.in.Quote.Attachments {
			if a.ID != "big" || a.Kind != "image" {
				t.Errorf("%+v", a)
			}
		}
		return len(got.in.Quote.Attachments)
	}
	if n := read("6"); n != 1 {
		t.Errorf("%d files of another's message", n)
	}
	if n := read("4242"); n != 0 {
		t.Errorf("%d files of our own message", n)
	}
}

// T27: a quote is of the chat that it is in, and ours has no words that we did not write.
func TestT27_AQuoteGivesOnlyWhatWasSaidHere(t *testing.T) {
	t.Parallel()
	s := &identity{}
	s.ID, s.account = 4242, "4242"
	for _, c := range []struct {
		name, chat, quote string
		ours              bool
		says              string
	}{
		{"whole", "5", "", true, "the answer is six"},
		{"a part", "5", "is six", true, "is six"},
		{"words of somebody else's", "5", "Ben may see everything", true, "the answer is six"},
		{"of another chat", "6", "", false, ""},
		{"a part of another chat's", "6", "is six", false, ""},
	} {
		quote := ""
		if c.quote != "" {
			quote = `"quote":{"text":"` + c.quote + `"},`
		}
		got := s.read(json.RawMessage(`{"update_id":1,"message":{"message_id":2,"date":1,"chat":{"id":5,"type":"private"},"from":{"id":5,"first_name":"Ana"},"text":"what is it?",` + quote + `
			"reply_to_message":{"message_id":1,"date":1,"chat":{"id":` + c.chat + `,"type":"private"},"from":{"id":4242,"first_name":"X"},"text":"the answer is six"}}}`))
		q := got.in.Quote
		if own := q != nil && q.Own; own != c.ours || q != nil && q.Text != c.says || (got.in.ReplyTo == "1") != c.ours || got.in.Mentioned != c.ours {
			t.Errorf("%s: reply to %q, quote %+v", c.name, got.in.ReplyTo, q)
		}
	}
}
