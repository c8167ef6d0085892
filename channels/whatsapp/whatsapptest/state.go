package whatsapptest

import (
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
)

// appState is what the account's devices share beside messages.
type appState struct {
	asked []*waE2E.ProtocolMessage // what the client asked of the phone
}

func (s *Server) syncQuery(child waBinary.Node) ([]waBinary.Node, *iqError) {
	var list []waBinary.Node
	for _, c := range child.GetChildren() {
		list = append(list, waBinary.Node{Tag: "collection", Attrs: waBinary.Attrs{"name": c.Attrs["name"], "version": "0"}})
	}
	return []waBinary.Node{{Tag: "sync", Content: list}}, nil
}
