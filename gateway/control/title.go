package control

import (
	"errors"
	"strings"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/lazy"
)

// titleLength is how many characters lists show of a title.
const titleLength = 60

// Title is what people call the session of a key: as somebody named it, as its network calls the conversation, or what was said in it
// first. known keeps what was read before.
func (f *Finder) Title(known map[string]string, key string) (string, error) {
	if title, ok := known[key]; ok {
		return title, nil
	}
	k, err := workspace.ParseKey(key)
	if err != nil {
		return key, nil // of a row of another version: it is shown as it is
	}
	ses, err := f.Records.SessionByKey(k)
	if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return "", err
	}
	first := ""
	if err == nil && ses.Name == "" {
		if first, _, err = f.Records.Glimpse(ses.ID); err != nil {
			return "", err
		}
	}
	title, err := f.TitleOf(k, ses.Name, first)
	if err == nil {
		known[key] = title
	}
	return title, err
}

// TitleFor is Title for a caller who reaches the session; for others it is empty, since it may be what was said there.
func (f *Finder) TitleFor(call Call, key string) (string, error) {
	if k, err := workspace.ParseKey(key); err != nil || !call.Reaches(k) {
		return "", nil
	}
	return f.Title(map[string]string{}, key)
}

// Called is a session as a terminal names it: by its title, with the key to name it by.
func Called(title, key string) string {
	if title == "" {
		return key
	}
	return title + " (" + ShortKey(key) + ")"
}

// TitleOf is the title of a session that was given a name, or none, and in which this was said first.
func (f *Finder) TitleOf(k workspace.Key, given, first string) (string, error) {
	room, err := f.RoomTitle(k)
	if err != nil {
		return "", err
	}
	for _, name := range []string{given, room, Preview(first, titleLength), k.Name, LocalTitle(k)} {
		if name != "" {
			return name, nil
		}
	}
	return k.String(), nil
}

// RoomTitle is what the network calls the conversation of a key.
func (f *Finder) RoomTitle(k workspace.Key) (string, error) {
	if k.Scope != workspace.ScopeAddress {
		return "", nil
	}
	at := channels.Address{Network: k.Network, Account: k.Account, Kind: k.Kind, Peer: k.Peer, Thread: k.Thread}
	r, err := f.Records.RoomByAddress(at)
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return OneLine(r.Title, titleLength), err
}

// made are names that the page and session.create give to chats that nobody has named.
var made = lazy.Regexp(`^chat-[0-9a-z]{6,10}(-\d+)?$`)

// LocalTitle is a local session's name as its person gave it.
func LocalTitle(k workspace.Key) string {
	name := k.Local
	if _, own, ok := strings.Cut(k.Local, ":"); ok {
		name = own
	}
	if made().MatchString(name) {
		return "New chat"
	}
	return name
}
