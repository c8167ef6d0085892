package telegram

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/channels"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

func testIdentity() *identity {
	return &identity{ID: 4242, Username: "ParleyBot", Name: "Parley", account: "4242"}
}

// TestUpdatesAreNormalised reads every update of testdata/updates; what it must become stands in .golden beside it.
func TestUpdatesAreNormalised(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/updates/*.json")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := testIdentity().read(raw)
			text := []byte("ignored\n")
			if got.keep {
				if text, err = json.MarshalIndent(got.in, "", " "); err != nil {
					t.Fatal(err)
				}
				text = append(text, '\n')
			}
			if !got.keep && got.id == 0 {
				t.Error("an ignored update has no id, so it cannot be confirmed")
			}
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *updateGolden {
				if err := os.WriteFile(golden, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || !bytes.Equal(text, want) {
				t.Errorf("became\n%swant (%v)\n%s", text, err, want)
			}
		})
	}
}

func TestT08_SenderIsTheIdWhateverTheNames(t *testing.T) {
	t.Parallel()
	raw := `{"update_id":1,"message":{"message_id":1,"date":1,"text":"x","chat":{"id":7,"type":"private"},
		"from":{"id":666,"first_name":"Ana","last_name":"Ruiz","username":"7"}}}`
	in := testIdentity().read(json.RawMessage(raw)).in
	if in.From.User != "666" || len(in.From.Alt) != 0 {
		t.Errorf("sender is %+v", in.From)
	}
}

func TestT08_EditsButtonsAndReactionsCarryTheSameSenderAndRoom(t *testing.T) {
	t.Parallel()
	s := testIdentity()
	read := func(name string) channels.Inbound {
		raw, err := os.ReadFile("testdata/updates/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		return s.read(raw).in
	}
	want := read("dm_text")
	for _, name := range []string{"edit", "reaction_added", "command_in_dm"} {
		if in := read(name); !reflect.DeepEqual(in.From, want.From) || in.To != want.To {
			t.Errorf("%s comes from %+v in %s, the message from %+v in %s", name, in.From, in.To, want.From, want.To)
		}
	}
	if in := read("button"); !reflect.DeepEqual(in.From, want.From) {
		t.Errorf("a button press comes from %+v", in.From)
	}
}

func TestTwoEditsInOneSecondAreTwoEvents(t *testing.T) {
	t.Parallel()
	edit := func(text string) string {
		return `{"update_id":1,"edited_message":{"message_id":1,"date":1,"edit_date":5,"text":"` + text +
			`","chat":{"id":7,"type":"private"},"from":{"id":7,"first_name":"A"}}}`
	}
	s := testIdentity()
	a, again, b := s.read(json.RawMessage(edit("a"))), s.read(json.RawMessage(edit("a"))), s.read(json.RawMessage(edit("b")))
	if a.in.Key == b.in.Key || a.in.Key != again.in.Key {
		t.Errorf("keys %q, %q, %q", a.in.Key, again.in.Key, b.in.Key)
	}
}

func TestBothNewsOfAMoveAreOneEvent(t *testing.T) {
	t.Parallel()
	s := testIdentity()
	var got []channels.Inbound
	for _, name := range []string{"moved_old_room", "moved_new_room"} {
		raw, err := os.ReadFile("testdata/updates/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.read(raw).in)
	}
	if !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("%+v and %+v", got[0], got[1])
	}
}

func TestPanicWhileReadingIsAnUnparsedUpdate(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(textUpdate(3, "x"))
	got := testIdentity().rescue(raw, func() (incoming, error) { panic("odd") })
	if !got.keep || got.in.Kind != channels.KindUnparsed || got.id != 3 || !bytes.Equal(got.in.Data, raw) {
		t.Errorf("became %+v", got)
	}
}

func FuzzUpdate(f *testing.F) {
	files, err := filepath.Glob("testdata/updates/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	kinds := []channels.Kind{channels.KindMessage, channels.KindEdit, channels.KindReaction, channels.KindButton, channels.KindMoved, channels.KindUnparsed}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := testIdentity()
		got, again := s.read(raw), s.read(raw)
		if !reflect.DeepEqual(got, again) {
			t.Fatalf("two deliveries differ:\n%+v\n%+v", got, again)
		}
		if !got.keep {
			return
		}
		in := got.in
		if in.Key == "" || !slices.Contains(kinds, in.Kind) || in.To.Account != "4242" || in.To.Network != Network {
			t.Fatalf("incomplete: %+v", in)
		}
		if in.Kind != channels.KindUnparsed && in.To.Peer == "" {
			t.Fatalf("no room: %+v", in)
		}
		switch in.Kind {
		case channels.KindMessage, channels.KindEdit, channels.KindReaction, channels.KindButton:
			if in.From.User == "" {
				t.Fatalf("no sender: %+v", in)
			}
		}
		if len(in.Data) > maxRaw {
			t.Fatalf("%d bytes of raw event", len(in.Data))
		}
		if _, err := json.Marshal(in); err != nil {
			t.Fatalf("cannot be journalled: %v", err)
		}
	})
}
