package whatsapptest

import (
	"maps"
	"strconv"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// stanza is something that waits until a client's device has taken it. What is sent again is the same ciphertext.
type stanza struct {
	node waBinary.Node
	at   time.Time
	sent int // times
}

// enqueue keeps a stanza for a device and sends it when the device is there.
func (s *Server) enqueue(d *companion, n waBinary.Node) {
	st := &stanza{node: n, at: s.now()}
	d.pending = append(d.pending, st)
	if d.conn != nil && d.active && !s.faults.held {
		s.transmit(d.conn, st, -1)
	}
	s.watch.Changed()
}

// transmit sends a stanza; offline is its place in what waited, or -1.
func (s *Server) transmit(c *conn, st *stanza, offline int) {
	n := st.node
	if offline >= 0 {
		n.Attrs = maps.Clone(n.Attrs)
		n.Attrs["offline"] = strconv.Itoa(offline)
	}
	st.sent++
	c.push(n)
}

// settle takes off what a device has taken: a message by its receipt or acknowledgement, all else by acknowledgement.
func (s *Server) settle(d *companion, tag, id string, from types.JID, participant any) bool {
	for i, st := range d.pending {
		a := st.node.Attrs
		if st.node.Tag != tag || a["id"] != id || a["from"] != from {
			continue
		}
		if p, ok := a["participant"]; ok && participant != nil && p != participant {
			continue
		}
		d.pending = append(d.pending[:i], d.pending[i+1:]...)
		return true
	}
	return false
}

// Receipt is a receipt that a client gave.
type Receipt struct {
	Type string // "": delivered; inactive: delivered while not shown online; read, played, retry, sender, hist_sync, peer_msg…
	Chat types.JID
	IDs  []string
}

func (s *Server) takeReceipt(c *conn, n *waBinary.Node) {
	to, _ := n.Attrs["to"].(types.JID)
	id, _ := n.Attrs["id"].(string)
	kind, _ := n.Attrs["type"].(string)
	ids := []string{id}
	list := n.GetChildByTag("list")
	for _, item := range list.GetChildren() {
		if one, ok := item.Attrs["id"].(string); ok {
			ids = append(ids, one)
		}
	}
	if s.faults.loseReceipts > 0 && kind != "retry" {
		s.faults.loseReceipts--
		s.faults.lost++
		return
	}
	s.receipts = append(s.receipts, Receipt{Type: kind, Chat: to.ToNonAD(), IDs: ids})
	ack := waBinary.Attrs{"class": "receipt", "id": id, "from": to}
	if kind != "" {
		ack["type"] = kind
	}
	c.push(waBinary.Node{Tag: "ack", Attrs: ack})
	switch kind {
	case "retry":
		s.resend(c.device, n, to)
	case "", "inactive", "sender", "peer_msg":
		s.settle(c.device, "message", id, to, n.Attrs["participant"])
	}
}

// Nack is an acknowledgement with an error that a client gave.
type Nack struct {
	ID, Class string
	Code      int
}

func (s *Server) takeAck(c *conn, n *waBinary.Node) {
	to, _ := n.Attrs["to"].(types.JID)
	id, _ := n.Attrs["id"].(string)
	class, _ := n.Attrs["class"].(string)
	if s.faults.loseReceipts > 0 && class == "message" {
		s.faults.loseReceipts--
		s.faults.lost++
		return
	}
	if code := n.AttrGetter().OptionalInt("error"); code != 0 {
		s.acks = append(s.acks, Nack{ID: id, Class: class, Code: code})
	}
	s.settle(c.device, class, id, to, n.Attrs["participant"])
}

// Lost counts the receipts and acknowledgements that were lost (LoseReceipts).
func (s *Server) Lost() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.lost
}

// Receipts are the receipts that the client gave, oldest first.
func (s *Server) Receipts() []Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Receipt(nil), s.receipts...)
}

// Nacks are the stanzas that the client refused.
func (s *Server) Nacks() []Nack {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Nack(nil), s.acks...)
}

// Receipted says that the client gave a receipt of the kind for the message. Both kinds of delivery count as "".
func (s *Server) Receipted(kind, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.receipts {
		for _, one := range r.IDs {
			if one == id && (r.Type == kind || kind == "" && r.Type == "inactive") {
				return true
			}
		}
	}
	return false
}

// Waiting are the ids of what no device of the client has taken yet: it will be offered to the next connection.
func (s *Server) Waiting() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, d := range s.companions {
		for _, st := range d.pending {
			if id, ok := st.node.Attrs["id"].(string); ok {
				all = append(all, id)
			}
		}
	}
	return all
}
