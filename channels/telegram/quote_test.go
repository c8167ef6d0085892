package telegram

import (
	"encoding/json"
	"testing"
)

// A reply to somebody's picture brings the picture; a reply to one of ours does not bring it back.
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
