package wire

import (
	"bytes"
	"sync"

	"parley/agentloop/llm"
)

// Prefixes remembers the encoded starts of the last few agents: the long and always equal part of every request.
// It is safe for concurrent use.
type Prefixes struct {
	Encode func(system string, tools []llm.Tool) []byte

	mu   sync.Mutex
	kept []prefix // the latest used last
}

type prefix struct {
	system string
	tools  []llm.Tool
	bytes  []byte
}

const maxPrefixes = 16

// Encoded is what Encode says. It must not be changed.
func (p *Prefixes) Encoded(system string, tools []llm.Tool) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.kept) - 1; i >= 0; i-- {
		if k := p.kept[i]; k.system == system && sameTools(k.tools, tools) {
			copy(p.kept[i:], p.kept[i+1:])
			p.kept[len(p.kept)-1] = k
			return k.bytes
		}
	}
	k := prefix{system: system, tools: append([]llm.Tool(nil), tools...), bytes: p.Encode(system, tools)}
	if len(p.kept) == maxPrefixes {
		copy(p.kept, p.kept[1:])
		p.kept = p.kept[:maxPrefixes-1]
	}
	p.kept = append(p.kept, k)
	return k.bytes
}

func sameTools(a, b []llm.Tool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Description != b[i].Description || !bytes.Equal(a[i].Schema, b[i].Schema) {
			return false
		}
	}
	return true
}
