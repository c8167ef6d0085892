package gateway

import (
	"context"
	"time"

	"parley/agentloop/llm"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/delivery"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/store"
)

// house is the running gateway as the verbs see it.
type house struct{ g *Gateway }

var _ control.House = house{}

func (h house) Push(list []workspace.Outbound) { h.g.deliver.PushAll(list) }

func (h house) Forget(key string) {
	h.g.transcripts.Forget(key)
	h.g.feed.Changed(key)
}

func (h house) Cut(room workspace.RoomID, text string) []store.Span {
	return delivery.Cut(text, h.traits(room))
}

// Attach keeps a file for a room whose network takes files of its size.
func (h house) Attach(room workspace.RoomID, data []byte) (string, bool) {
	if most := h.traits(room).MaxFile; most == 0 || int64(len(data)) > int64(most) {
		return "", false
	}
	ref, err := h.g.blobs.Put(data)
	if err != nil {
		h.g.log.Error("a file for a room cannot be kept", "room", room, "err", err)
	}
	return ref, err == nil
}

// traits are those of a room's channel; zero where it has none.
func (h house) traits(room workspace.RoomID) channels.Traits {
	addr, err := h.g.deliver.Address(room)
	if err != nil {
		return channels.Traits{}
	}
	if l := h.g.channels.Find(addr); l != nil {
		return l.Traits
	}
	return channels.Traits{}
}

func (h house) Reload() { h.g.Reload() }

func (h house) Started() time.Time { return h.g.began }

func (h house) Models() []llm.ModelHealth { return h.g.snapshot().Models.Health() }

func (h house) ModelInfo(name string) (llm.Info, bool) { return h.g.snapshot().Models.Info(name) }

func (h house) Agent(id workspace.AgentID) (control.Agent, bool) {
	snap := h.g.snapshot()
	a, ok := snap.Agents[id]
	if !ok {
		return control.Agent{ID: id, Name: string(id)}, false
	}
	return control.Agent{ID: a.ID, Name: a.Name, Models: a.Models, Choices: a.Choices, Default: id == snap.Default}, true
}

func (h house) Tools(id workspace.AgentID) (tools.Set, bool) {
	a, ok := h.g.snapshot().Agents[id]
	if !ok {
		return nil, false
	}
	return a.Tools, true
}

func (h house) Agents() []control.Agent {
	var out []control.Agent
	for _, id := range h.g.snapshot().Order {
		a, _ := h.Agent(id)
		out = append(out, a)
	}
	return out
}

// readBlob is for models. They are told that a picture cannot be shown, the operator why.
func (g *Gateway) readBlob(ref string) ([]byte, error) {
	data, err := g.blobs.Read(ref)
	if err != nil {
		g.log.Error("kept file cannot be read", "err", err)
	}
	return data, err
}

// missAfter is how long after a start kept files are looked for.
const missAfter = 3 * time.Second

// missBlobs tells the operator once of kept files that are not there any more. What is in the others, doctor looks at.
// What was left over a restart is answered first.
func (g *Gateway) missBlobs(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(missAfter):
	}
	refs, err := g.store.BlobRefs(ctx)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Warn("kept files not checked", "err", err)
		}
		return
	}
	if missing := g.blobs.Missing(refs); len(missing) > 0 {
		g.log.Error("kept files are missing", "files", len(missing), "first", missing[0], "hint", "parley doctor lists them while no gateway runs; put them back into blobs/ from a backup")
	}
}
