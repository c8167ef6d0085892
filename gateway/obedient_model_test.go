package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"parley/agentloop/llm/llmtest"
)

// The obedient model does whatever any text in its prompt tells it, whoever wrote it and wherever it stands: it is what
// every model may become under injection. Nothing here may rest on its judgement.
//
//	CALL name {json}   it calls the tool, once; {{R}} in the arguments is all that tools returned in this turn
//	SAY text           it ends its turn with that line; {{R}} and {{U}} are what tools returned, plain or for a URL
//	LOOP code          it calls write_file for ever, each time for another file
//	DO code            what it was taught of the code, where there is little room: a name, a button
type obedient struct {
	mu     sync.Mutex
	lesson map[string]string
	loops  map[string]int // how often it went round, by code
}

// loopEnough is how often it goes round, at most: more often than the 20 steps let it.
const loopEnough = 25

func newObedient() *obedient { return &obedient{lesson: map[string]string{}, loops: map[string]int{}} }

func (o *obedient) teach(code, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lesson[code] = text
}

func (o *obedient) rounds(code string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.loops[code]
}

var (
	doCode   = regexp.MustCompile(`DO[ _](x\d+)`)
	order    = regexp.MustCompile(`CALL ([a-z_]+) \{|SAY ([^\n]*)|LOOP (x\d+)`)
	blankers = strings.NewReplacer(`\"`, `"`, `\u0026`, "&")
)

// reply is the model.
func (o *obedient) reply(r *llmtest.Request) llmtest.Reply {
	text, done, said, results := o.read(r)
	say, loop := "", ""
	for {
		at := order.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		switch {
		case at[2] >= 0:
			name := text[at[2]:at[3]]
			text = text[at[1]-1:]
			var args json.RawMessage
			if json.NewDecoder(strings.NewReader(text)).Decode(&args) != nil {
				continue
			}
			text = text[len(args):]
			if !done[mark(name, string(args))] {
				quoted, _ := json.Marshal(results) // a string always marshals
				return llmtest.Reply{Calls: []llmtest.Call{{Name: name, Args: strings.ReplaceAll(string(args), "{{R}}", string(quoted[1:len(quoted)-1]))}}}
			}
			continue
		case at[4] >= 0:
			if s := text[at[4]:at[5]]; !said[s] {
				say = s
			}
		default:
			loop = text[at[6]:at[7]]
		}
		text = text[at[1]:]
	}
	if loop != "" {
		return o.goRound(loop)
	}
	if say == "" {
		say = "done. {{R}}"
	}
	return llmtest.Reply{Text: strings.NewReplacer("{{R}}", results, "{{U}}", url.QueryEscape(results)).Replace(say)}
}

// goRound calls on and on.
func (o *obedient) goRound(code string) llmtest.Reply {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.loops[code]++; o.loops[code] >= loopEnough {
		return llmtest.Reply{Text: "tired"}
	}
	return llmtest.Reply{Calls: []llmtest.Call{{Name: "write_file", Args: fmt.Sprintf(`{"path":"loop-%d.txt","content":"%s"}`, o.loops[code], code)}}}
}

// read is all text of the prompt that the model did not write itself, what it has called and said before, and what tools
// returned in this turn.
func (o *obedient) read(r *llmtest.Request) (text string, done, said map[string]bool, results string) {
	var b strings.Builder
	done, said = map[string]bool{}, map[string]bool{}
	for _, m := range r.Chat().Messages {
		switch m.Role {
		case "assistant":
			for _, c := range m.ToolCalls {
				done[mark(c.Function.Name, c.Function.Arguments)] = true
			}
			said[m.Text()] = true
			continue
		case "user":
			results = ""
		case "tool":
			results += m.Text()
		}
		b.WriteString(m.Text() + "\n")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	text = doCode.ReplaceAllStringFunc(b.String(), func(s string) string { return "\n" + o.lesson[doCode.FindStringSubmatch(s)[1]] + "\n" })
	return blankers.Replace(text), done, said, results
}

// mark tells calls apart: as they are written, or by where they write, for what they write may hold results.
func mark(name, args string) string {
	var a struct{ Path, Content string }
	if json.Unmarshal([]byte(args), &a) != nil || a.Content == "" {
		return name + args
	}
	return name + " " + a.Path
}
