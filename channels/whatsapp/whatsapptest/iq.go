package whatsapptest

import (
	"encoding/binary"
	"fmt"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// iqError is a refusal of a query.
type iqError struct {
	code int
	text string
}

// takeIQ answers a query.
func (s *Server) takeIQ(c *conn, n *waBinary.Node) {
	kind, _ := n.Attrs["type"].(string)
	if kind == "result" || kind == "error" {
		s.takeResult(c, n, kind)
		return
	}
	space, _ := n.Attrs["xmlns"].(string)
	child := waBinary.Node{}
	if kids := n.GetChildren(); len(kids) > 0 {
		child = kids[0]
	}
	s.queries[space+" "+child.Tag]++
	if c.device == nil && space != "md" && space != "w:p" {
		s.complainLocked("a query of %s before login", space)
		s.refuse(c, n, iqError{401, "not-authorized"})
		return
	}
	if space == "w:p" && s.faults.deaf {
		return
	}
	content, fail := s.query(c, n, space, kind, child)
	if fail != nil {
		s.refuse(c, n, *fail)
		return
	}
	c.push(waBinary.Node{Tag: "iq", Attrs: s.answerAttrs(n, "result"), Content: nodes(content)})
	if space == "passive" && child.Tag == "active" {
		s.activate(c)
	}
	if child.Tag == "remove-companion-device" {
		s.detach(c)
		c.end()
	}
}

func nodes(list []waBinary.Node) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (s *Server) answerAttrs(n *waBinary.Node, kind string) waBinary.Attrs {
	from, ok := n.Attrs["to"]
	if !ok {
		from = types.ServerJID
	}
	return waBinary.Attrs{"from": from, "id": n.Attrs["id"], "type": kind}
}

func (s *Server) refuse(c *conn, n *waBinary.Node, e iqError) {
	c.push(waBinary.Node{Tag: "iq", Attrs: s.answerAttrs(n, "error"), Content: []waBinary.Node{{
		Tag: "error", Attrs: waBinary.Attrs{"code": e.code, "text": e.text},
	}}})
}

func (s *Server) query(c *conn, n *waBinary.Node, space, kind string, child waBinary.Node) ([]waBinary.Node, *iqError) {
	switch space {
	case "encrypt":
		return s.encryptQuery(c, n, kind, child)
	case "usync":
		return s.usync(c, child)
	case "w:g2":
		return s.groupQuery(n, child)
	case "w:m":
		return s.mediaConn(), nil
	case "md":
		return s.deviceQuery(c, child)
	case "w:sync:app:state":
		return s.syncQuery(child)
	case "privacy":
		var list []waBinary.Node
		for _, name := range []string{"groupadd", "last", "status", "profile", "readreceipts", "online", "calladd"} {
			list = append(list, waBinary.Node{Tag: "category", Attrs: waBinary.Attrs{"name": name, "value": "all"}})
		}
		return []waBinary.Node{{Tag: "privacy", Content: list}}, nil
	case "blocklist":
		return []waBinary.Node{{Tag: "list", Attrs: waBinary.Attrs{"dhash": "0"}}}, nil
	case "w", "abt":
		return []waBinary.Node{{Tag: "props", Attrs: waBinary.Attrs{"protocol": "1"}}}, nil
	}
	return nil, nil // the rest (push, status, passive, ping…) is answered by an empty result
}

func (s *Server) encryptQuery(c *conn, n *waBinary.Node, kind string, child waBinary.Node) ([]waBinary.Node, *iqError) {
	switch {
	case kind == "set":
		if err := c.device.upload(n); err != nil {
			s.complainLocked("upload of prekeys: %v", err)
			return nil, &iqError{406, "not-acceptable"}
		}
		return nil, nil
	case child.Tag == "count":
		return []waBinary.Node{{Tag: "count", Attrs: waBinary.Attrs{"value": len(c.device.once)}}}, nil
	case child.Tag == "key":
		var list []waBinary.Node
		for _, u := range child.GetChildren() {
			list = append(list, s.bundleOf(u))
		}
		return []waBinary.Node{{Tag: "list", Content: list}}, nil
	}
	return nil, nil
}

// bundleOf is one user of the answer to a request for keys.
func (s *Server) bundleOf(u waBinary.Node) waBinary.Node {
	j, _ := u.Attrs["jid"].(types.JID)
	out := waBinary.Node{Tag: "user", Attrs: waBinary.Attrs{"jid": j}}
	p := s.peerOf(j)
	if p == nil {
		out.Content = []waBinary.Node{{Tag: "error", Attrs: waBinary.Attrs{"code": 404, "text": "item-not-found"}}}
		return out
	}
	regID, id, signed, once := p.bundle()
	out.Content = []waBinary.Node{
		{Tag: "registration", Content: binary.BigEndian.AppendUint32(nil, regID)},
		{Tag: "type", Content: []byte{5}},
		{Tag: "identity", Content: id[:]},
		keyNode("skey", signed),
		keyNode("key", once),
	}
	return out
}

func keyNode(tag string, k *keys.PreKey) waBinary.Node {
	n := waBinary.Node{Tag: tag}
	parts := []waBinary.Node{{Tag: "id", Content: binary.BigEndian.AppendUint32(nil, k.KeyID)[1:]}, {Tag: "value", Content: k.Pub[:]}}
	if k.Signature != nil {
		parts = append(parts, waBinary.Node{Tag: "signature", Content: k.Signature[:]})
	}
	n.Content = parts
	return n
}

// upload takes a client's prekeys.
func (c *companion) upload(n *waBinary.Node) error {
	id, err := key32(contentOf(n, "identity"))
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if *id != c.identity {
		return fmt.Errorf("the identity is another one than at linking")
	}
	reg := contentOf(n, "registration")
	if len(reg) != 4 {
		return fmt.Errorf("a registration id of %d bytes", len(reg))
	}
	skey := n.GetChildByTag("skey")
	signed, err := readKey(&skey)
	if err != nil || signed.Signature == nil {
		return fmt.Errorf("the signed prekey: %w", err)
	}
	list := n.GetChildByTag("list")
	for _, k := range list.GetChildren() {
		once, err := readKey(&k)
		if err != nil {
			return fmt.Errorf("a prekey: %w", err)
		}
		c.once = append(c.once, once)
	}
	c.regID, c.signed = binary.BigEndian.Uint32(reg), signed
	return nil
}

func contentOf(n *waBinary.Node, tags ...string) []byte {
	child, _ := n.GetOptionalChildByTag(tags...)
	b, _ := child.Content.([]byte)
	return b
}

func readKey(n *waBinary.Node) (*keys.PreKey, error) {
	id := contentOf(n, "id")
	pub, err := key32(contentOf(n, "value"))
	if err != nil || len(id) != 3 {
		return nil, fmt.Errorf("a key with an id of %d bytes: %w", len(id), err)
	}
	k := &keys.PreKey{KeyPair: keys.KeyPair{Pub: pub}, KeyID: binary.BigEndian.Uint32(append([]byte{0}, id...))}
	if sig := contentOf(n, "signature"); len(sig) == 64 {
		k.Signature = (*[64]byte)(sig)
	}
	return k, nil
}

// usync answers who has WhatsApp, with which devices and which LID.
func (s *Server) usync(c *conn, child waBinary.Node) ([]waBinary.Node, *iqError) {
	asked := map[string]bool{}
	query := child.GetChildByTag("query")
	for _, q := range query.GetChildren() {
		asked[q.Tag] = true
	}
	list := child.GetChildByTag("list")
	var users []waBinary.Node
	for _, u := range list.GetChildren() {
		users = append(users, s.usyncUser(c, u, asked))
	}
	return []waBinary.Node{{Tag: "usync", Attrs: child.Attrs, Content: []waBinary.Node{{Tag: "result"}, {Tag: "list", Content: users}}}}, nil
}

func (s *Server) usyncUser(c *conn, u waBinary.Node, asked map[string]bool) waBinary.Node {
	j, ok := u.Attrs["jid"].(types.JID)
	number := contentOf(&u, "contact")
	if !ok {
		user, _, _ := strings.Cut(strings.TrimPrefix(string(number), "+"), "@")
		j = types.NewJID(user, types.DefaultUserServer)
	}
	p := s.find(j)
	known := p != nil && !p.gone
	out := waBinary.Node{Tag: "user", Attrs: waBinary.Attrs{"jid": j}}
	var parts []waBinary.Node
	if asked["contact"] {
		in := "out"
		if known {
			in = "in"
		}
		parts = append(parts, waBinary.Node{Tag: "contact", Attrs: waBinary.Attrs{"type": in}, Content: number})
	}
	if asked["devices"] {
		var devices []waBinary.Node
		if known {
			for _, n := range s.devicesOf(c, p) {
				devices = append(devices, waBinary.Node{Tag: "device", Attrs: waBinary.Attrs{"id": int(n)}})
			}
		}
		parts = append(parts, waBinary.Node{Tag: "devices", Content: []waBinary.Node{{Tag: "device-list", Content: nodes(devices)}}})
	}
	if asked["lid"] && known {
		parts = append(parts, waBinary.Node{Tag: "lid", Attrs: waBinary.Attrs{"val": p.Hidden()}})
	}
	if asked["status"] && known {
		parts = append(parts, waBinary.Node{Tag: "status", Content: []byte("Hey there! I am using WhatsApp.")})
	}
	out.Content = nodes(parts)
	return out
}

// devicesOf lists the numbers of a person's devices, companions of the account among them but the one that asks.
func (s *Server) devicesOf(c *conn, p *person) []uint16 {
	var all []uint16
	for _, d := range p.devices {
		all = append(all, d.device)
	}
	if p == s.owner {
		for n := range s.companions {
			if n != c.device.device {
				all = append(all, n)
			}
		}
	}
	return all
}

func (s *Server) groupQuery(n *waBinary.Node, child waBinary.Node) ([]waBinary.Node, *iqError) {
	to, _ := n.Attrs["to"].(types.JID)
	switch child.Tag {
	case "participating":
		var list []waBinary.Node
		for _, r := range s.groups {
			if r.members[s.owner.Phone] {
				list = append(list, s.groupNode(r))
			}
		}
		return []waBinary.Node{{Tag: "groups", Content: nodes(list)}}, nil
	case "query":
		r := s.groups[to]
		if r == nil {
			return nil, &iqError{404, "item-not-found"}
		}
		if !r.members[s.owner.Phone] {
			return nil, &iqError{403, "forbidden"}
		}
		return []waBinary.Node{s.groupNode(r)}, nil
	}
	return nil, nil
}

func (s *Server) groupNode(r *room) waBinary.Node {
	var list []waBinary.Node
	for phone, in := range r.members {
		if !in {
			continue
		}
		p := s.people[phone]
		a := waBinary.Attrs{"jid": p.Hidden(), "phone_number": p.PN()}
		if r.ByPhone {
			a = waBinary.Attrs{"jid": p.PN(), "lid": p.Hidden()}
		}
		list = append(list, waBinary.Node{Tag: "participant", Attrs: a})
	}
	return waBinary.Node{Tag: "group", Attrs: waBinary.Attrs{
		"id": r.ID, "subject": r.Subject, "creation": "1700000000", "s_t": "1700000000", "addressing_mode": mode(r.ByPhone), "size": len(list),
	}, Content: list}
}

func mode(byPhone bool) string {
	if byPhone {
		return "pn"
	}
	return "lid"
}
