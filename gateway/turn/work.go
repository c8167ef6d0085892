// Where a turn works, and the files that it sends.

package turn

import (
	"fmt"
	"time"

	"parley/channels"
	"parley/gateway/delivery"
	"parley/gateway/snapshot"
	"parley/workspace"
	"parley/workspace/store"
)

// furnishWork says where the tools of a turn work, and how large a file its conversation takes.
func (r *recorder) furnishWork(agent *snapshot.Agent) {
	t := &r.turn
	t.WorkDir = agent.Files.WorkDir(agent.Scope, r.key, t.Requester, r.at.Address)
	t.Control, t.Folders = agent.Files.Dir, nil
	if workspace.Shares(r.key, t.Requester, r.at.Address) {
		t.Folders = agent.Folders
	}
	switch {
	case r.at.local(): // it is fetched from the transcript
		t.MaxFile = workspace.MaxUpload
	case r.over.Send == "off":
		t.MaxFile = 0
	default:
		t.MaxFile = r.at.channel.Traits.MaxFile
	}
}

// addressOf is the address of a room; zero for the API.
func addressOf(d *delivery.Outbox, room workspace.RoomID) channels.Address {
	if room == "" {
		return channels.Address{}
	}
	addr, err := d.Address(room)
	if err != nil {
		return channels.Address{}
	}
	return addr
}

// sentFiles are the files of calls that came to their end: an outbound each, in the commit of the result. Who reads the
// transcript finds them there.
func (r *recorder) sentFiles(steps []workspace.Step) (list []store.NewOutbound) {
	if !r.at.sends() || r.over.Send == "off" {
		return nil
	}
	for _, st := range steps {
		if st.State != workspace.StepDone {
			continue
		}
		for i, f := range st.Body.Files {
			out := store.NewOutbound{Key: fmt.Sprintf("run:%s:file:%s:%d", r.run.ID, st.CallID, i), RoomID: r.at.ID, RunID: r.run.ID,
				Kind: workspace.OutFile, Text: f.Name, Spans: []store.Span{{Blob: f.Blob}}, OnUnknown: r.snapshot.OnUnknown}
			if r.snapshot.StaleAfter > 0 {
				out.NotAfter = r.ts.Now().Add(r.snapshot.StaleAfter)
			}
			list = append(list, r.replying(out))
		}
	}
	return list
}

// handOver lets a person fetch what an agent sends into their local session. Owners may fetch every file.
func (r *recorder) handOver(steps []workspace.Step) {
	if !r.at.local() || r.turn.Requester.Role == workspace.Owner {
		return
	}
	now := r.ts.Now()
	for _, st := range steps {
		for _, f := range st.Body.Files {
			u := workspace.Upload{Ref: f.Blob, Person: r.turn.Requester.Person, Kind: "file", Name: f.Name, MIME: f.MIME, Size: f.Size,
				Created: now}
			if err := r.ts.Store.AddUpload(u, now.Add(-24*time.Hour), workspace.MaxUploadDay); err != nil {
				r.ts.Log.Warn("a sent file cannot be fetched by its person", "run", r.run.ID, "err", err)
			}
		}
	}
}
