package gateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway"
)

// Why a start failed is printed for people to see.
func TestE52_AFailedStartTellsNoSecret(t *testing.T) {
	t.Parallel()
	const canary = "canary-0123456789-abcdefgh"
	leaky := channels.Factory{Network: "leaky", Options: func() any { return &struct{}{} },
		New: func(string, any, channels.Deps) (channels.Channel, error) {
			return nil, errors.New("no server at https://x/" + canary)
		}}
	dir := t.TempDir()
	conf := filepath.Join(dir, "parley.yaml")
	if err := os.WriteFile(conf, []byte("data_dir: "+dir+"/data\ngateway: {token: "+canary+"}\nchannels: [{name: x, type: leaky}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := source.New(configs.LoadOptions{Path: conf, Sections: []configs.Section{{Type: "leaky", Options: leaky.Options}}, Env: func(string) (string, bool) { return "", false }})
	if _, err := src.Load(); err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Options{Source: src, Channels: []channels.Factory{leaky}, Env: func(string) (string, bool) { return "", false }})
	if err := g.Start(t.Context()); err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "https://x/[secret]") {
		t.Errorf("start: %v", err)
	}
}
