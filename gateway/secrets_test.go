package gateway_test

import (
	"strings"
	"testing"

	"parley/configs"
	"parley/gateway"
)

// Why a start failed is printed for people to see.
func TestE52_AFailedStartTellsNoSecret(t *testing.T) {
	t.Parallel()
	const canary = "postgres://parley:canary-password@127.0.0.1:1/nowhere?canary=1&connect_timeout=bad"
	src := configs.NewSource(configs.LoadOptions{Path: "", Env: func(name string) (string, bool) {
		if name == configs.EnvName("data_dir") {
			return t.TempDir(), true
		}
		return "", false
	}})
	if _, err := src.Load(); err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Options{Source: src, Env: func(name string) (string, bool) { return canary, name == "PARLEY_POSTGRES" }})
	err := g.Start(t.Context())
	if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "canary-password") {
		t.Errorf("start: %v", err)
	}
}
