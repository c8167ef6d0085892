package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strings"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
)

// Kind is a network that can be connected, with what a person does for it.
type Kind struct {
	Type   string                `json:"type"` // of its channels in the configuration
	Title  string                `json:"title"`
	Name   string                `json:"name"`  // what its channel is called, when nobody says otherwise
	Steps  []string              `json:"steps"` // Markdown
	Links  []channels.Link       `json:"links"`
	Fields []channels.SetupField `json:"fields"`
	After  []string              `json:"after"` // Markdown: once it is configured
	QR     bool                  `json:"qr"`    // linked by a code: POST /v1/channels/{name}/login
	// Manifest is what to paste where the network wants a description of the app first.
	Manifest string `json:"manifest,omitempty"`
}

// createApp is where Slack makes an app of a manifest that comes with the address
// (docs.slack.dev/app-manifests/configuring-apps-with-app-manifests).
const createApp = "https://api.slack.com/apps?new_app=1&manifest_json="

// Kinds are the networks of the factories that tell how to set them up, in their order.
func Kinds(factories []channels.Factory) ([]Kind, error) {
	var list []Kind
	for _, f := range factories {
		s := f.Setup
		if s.Title == "" {
			continue
		}
		k := Kind{Type: string(f.Network), Title: s.Title, Name: s.Name, Steps: s.Steps, Links: s.Links, Fields: s.Fields, After: s.After,
			QR: s.QR}
		if f.Manifest != nil {
			text, err := f.Manifest(channels.ManifestAsk{Name: "Parley"})
			if err != nil {
				return nil, err
			}
			var short bytes.Buffer
			if err := json.Compact(&short, text); err != nil {
				return nil, err
			}
			k.Manifest = string(text)
			k.Links = append([]channels.Link{{Title: "Create the app", URL: createApp + url.QueryEscape(short.String())}}, k.Links...)
		}
		list = append(list, k)
	}
	return list, nil
}

var ListKinds = control.Verb[*Operator, struct{}, spec.List[Kind]]{
	Name: "channel.kinds", Help: "List the networks that can be connected, and how", Rights: rights.Owners,
	HTTP: "GET /v1/channels/kinds", Group: "channels", CLI: "channel kinds",
	Do: func(_ context.Context, c *Operator, _ control.Call, _ struct{}) (spec.List[Kind], error) {
		list, err := Kinds(c.Networks)
		return spec.Whole(list), err
	},
	Show: func(_ struct{}, l spec.List[Kind]) spec.Shown {
		s := spec.Shown{Heads: []string{"TYPE", "NETWORK", "WANTS"}}
		for _, k := range l.Items {
			var wants []string
			for _, f := range k.Fields {
				wants = append(wants, f.Key)
			}
			if k.QR {
				wants = append(wants, "a phone that scans a code")
			}
			s.Rows = append(s.Rows, []any{k.Type, k.Title, strings.Join(wants, ", ")})
		}
		return s
	},
}
