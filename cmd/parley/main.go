// Command parley is the gateway daemon and its command line.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"parley/channels/all"
	"parley/configs"
	"parley/gateway"
)

func main() {
	var path string
	for i, a := range os.Args {
		if a == "--config" {
			path = os.Args[i+1]
		}
	}
	var secs []configs.Section
	for _, f := range all.Factories() {
		secs = append(secs, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	src := configs.NewSource(configs.LoadOptions{Path: path, Sections: secs})
	if _, err := src.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	g := gateway.New(gateway.Options{Source: src, Channels: all.Factories(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err := g.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ctx.Done()
	stop()
	c2, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := g.Stop(c2); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
