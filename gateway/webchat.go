package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"parley/channels"
	"parley/channels/webchat"
	"parley/configs"
	"parley/gateway/api/stream"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// openLocal makes the channel of WebChat, whose page is served by the one listener. It is always there, as that of the API is.
func (g *Gateway) openLocal() {
	g.web = webchat.New(webchat.Options{Hide: g.hide().JSON, Desk: desk{g}, Log: g.log.With("channel", configs.WebChat), Now: g.opt.Now, Version: g.opt.Version, Boot: g.store.Epoch()})
	g.channels.Add(transport.New(configs.Channel{Name: configs.WebChat, Type: configs.WebChat}, g.web, g.log, g.opt.Now))
}

// live serves a page's live line. Who asks was judged by the API.
func (g *Gateway) live(w http.ResponseWriter, r *http.Request, call control.Call, still func() error) {
	g.web.Serve(w, r, webchat.Person{ID: string(call.Actor.Person), Role: string(call.Actor.Role), Name: call.Actor.Name}, still)
}

// desk is the gateway as WebChat's pages need it.
type desk struct{ g *Gateway }

var _ webchat.Desk = desk{}

// call is who a page speaks for; its rights are looked up again, since a line lives long.
func (d desk) call(who webchat.Person) control.Call {
	return control.Call{Actor: d.g.localActor(workspace.PersonID(who.ID)), Kind: channels.DM, Borrowed: true}
}

func (d desk) Follow(ctx context.Context, who webchat.Person, f webchat.Follow, put webchat.Put) error {
	return d.g.api.Streams.Follow(ctx, d.call(who), stream.Following{Key: f.Key, Was: workspace.SessionID(f.Was), After: f.After,
		Who: func() control.Call { return d.call(who) }}, stream.Put(put))
}

func (d desk) Watch(ctx context.Context, who webchat.Person, put webchat.Put) error {
	return d.g.api.Streams.Watch(ctx, d.call(who), stream.Put(put))
}

func (d desk) Problem(err error) json.RawMessage {
	text, merr := json.Marshal(wire.ProblemOf(said(err)))
	if merr != nil { // our own type: only a bug comes here
		return json.RawMessage("null")
	}
	return text
}

// said gives errors of the line their sentence.
func said(err error) error {
	for _, e := range []error{webchat.ErrUnreadable, webchat.ErrNoID, webchat.ErrEmpty, webchat.ErrTooLong, webchat.ErrTooMany} {
		if errors.Is(err, e) {
			return workspace.Say(errors.Join(workspace.ErrInvalid, err), "Refused: %s.", e.Error())
		}
	}
	return err
}

func (d desk) Place(who webchat.Person, agent, session string) (channels.PeerID, error) {
	key, err := d.g.intake.LocalKey(d.call(who).Actor, workspace.AgentID(agent), session)
	return channels.PeerID(key.String()), err
}

func (d desk) Stored(who webchat.Person, id channels.MessageID) (webchat.Stored, error) {
	key := channels.MessageKey(channels.Address{Network: webchat.Network, Account: channels.AccountID(who.ID)}, id)
	in, err := d.g.store.InputByKey(configs.WebChat, who.ID, key)
	if err != nil {
		return webchat.Stored{}, err
	}
	if !in.Decision.Allow {
		return webchat.Stored{}, workspace.Say(workspace.ErrDenied, "You may not write there.")
	}
	s := webchat.Stored{InputID: string(in.ID), Session: in.Binding.Key}
	if in.RunID != "" {
		run := string(in.RunID)
		s.RunID = &run
	}
	return s, nil
}

func (d desk) Takes(to channels.Address) error {
	if d.g.token() == "" {
		return webchat.ErrShut
	}
	who := d.g.localActor(workspace.PersonID(to.Account))
	if key, err := workspace.ParseKey(string(to.Peer)); err != nil || !rights.Reaches(who, key) {
		return webchat.ErrGone
	}
	return nil
}

func (d desk) File(who webchat.Person, ref string) (channels.Attachment, error) {
	return d.g.control.Files.Attachment(d.g.base, d.call(who), ref)
}

// Open reads what a message carries: its reference was checked when the message was taken.
func (d desk) Open(_ context.Context, a channels.Attachment) (io.ReadCloser, error) {
	f, err := d.g.blobs.Open(a.ID)
	if err != nil {
		return nil, err
	}
	if a.Size > 0 && f.Size() > a.Size {
		return nil, errors.Join(fmt.Errorf("open attachment: %w", channels.ErrTooLarge), f.Close())
	}
	return f, nil
}

// Offer gives the reference under which owners fetch a kept file.
func (d desk) Offer(_ webchat.Person, f channels.File) (string, error) {
	kept, err := d.g.blobs.Open(f.Ref)
	if err != nil {
		return "", err
	}
	return f.Ref, kept.Close()
}

// localActor is a person who came by a sign-in or the token, with the role that they have now.
func (g *Gateway) localActor(id workspace.PersonID) workspace.Actor {
	who, err := g.directory.Local(id)
	if err != nil {
		g.log.Error("person is not read", "person", id, "err", err)
	}
	return who
}

// ended keeps the sign-ins that were ended.
type ended struct{ store *store.Store }

const endedSetting = "sign_ins_ended"

func (e ended) Load() (string, error)  { return e.store.Setting(endedSetting) }
func (e ended) Save(list string) error { return e.store.SetSetting(endedSetting, list) }
