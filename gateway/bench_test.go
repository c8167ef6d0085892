package gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/configs/source"
	"parley/tools/sandbox"
)

// nullNet is a network without a wire: what is sent has arrived, and the peer writes again at once.
type nullNet struct {
	answered chan channels.PeerID
	ready    chan struct{}
}

func (n *nullNet) Account() channels.AccountID { return "bot" }

func (n *nullNet) Send(_ context.Context, p channels.Post) (channels.MessageID, error) {
	n.answered <- p.To.Peer
	return "1", nil
}

func (n *nullNet) Traits() channels.Traits {
	return channels.Traits{Unit: channels.UTF16, MaxUnits: 4096, Dialect: channels.Plain}
}

// Run hands on up to a hundred messages at a time, as a poll of Telegram does. A peer with nothing left says nothing.
func (n *nullNet) Run(ctx context.Context, in channels.Intake) error {
	in.Report(channels.Status{State: channels.Ready})
	close(n.ready)
	<-ctx.Done()
	return nil
}

// talk keeps every peer writing until left messages are answered.
func (n *nullNet) talk(b *testing.B, in channels.Intake, peers, left int, said map[channels.PeerID]int) {
	b.Helper()
	var batch []channels.Inbound
	say := func(peer channels.PeerID) {
		said[peer]++
		id := strconv.Itoa(said[peer])
		batch = append(batch, channels.Inbound{Key: "m:" + string(peer) + ":" + id, Kind: channels.KindMessage, ID: channels.MessageID(id), Time: time.Now(),
			From: channels.Sender{User: channels.UserID(peer), Name: "P"}, To: channels.Address{Network: "null", Account: "bot", Kind: channels.DM, Peer: peer}, Text: "ping " + id})
	}
	flush := func() {
		if err := in.Receive(b.Context(), batch...); err != nil {
			b.Fatal(err)
		}
		batch = nil
	}
	began := min(peers, left)
	for i := range began {
		if say(channels.PeerID(strconv.Itoa(i + 1))); len(batch) == 100 {
			flush()
		}
	}
	for open := began; open > 0; {
		if len(batch) > 0 && len(batch) < 100 {
			select {
			case peer := <-n.answered:
				open--
				if began < left {
					say(peer)
					began, open = began+1, open+1
				}
				continue
			default:
			}
		}
		if len(batch) > 0 {
			flush()
		}
		peer := <-n.answered
		open--
		if began < left {
			say(peer)
			began, open = began+1, open+1
		}
	}
}

// BenchmarkLine is the whole line on SQLite with its default of a synced commit: policy, history, prompt, loop, journal and
// delivery, with the built-in responder for a model and no network. Each session has a history.
func BenchmarkLine(b *testing.B) {
	for _, peers := range []int{1, 1000} {
		b.Run(fmt.Sprintf("sessions=%d", peers), func(b *testing.B) {
			net := &nullNet{answered: make(chan channels.PeerID, peers), ready: make(chan struct{})}
			g := startNull(b, net)
			<-net.ready
			in := g.intake.For(g.channels.All()[0])
			said := map[channels.PeerID]int{}
			net.talk(b, in, peers, 4*peers, said)
			if err := g.store.SetSetting("bench", "begin"); err != nil { // behind the last receipt
				b.Fatal(err)
			}
			before := g.store.Counts()
			b.ResetTimer()
			net.talk(b, in, peers, b.N, said)
			b.StopTimer()
			if err := g.store.SetSetting("bench", "end"); err != nil {
				b.Fatal(err)
			}
			c := g.store.Counts()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			b.ReportMetric(float64(c.Waited-before.Waited-1)/float64(b.N), "waited/msg")
			b.ReportMetric(float64(c.Statements-before.Statements-1)/float64(b.N), "statements/msg")
			b.ReportMetric(float64(c.Commits-before.Commits-1)/float64(b.N), "commits/msg")
		})
	}
}

func startNull(b *testing.B, net *nullNet) *Gateway {
	b.Helper()
	f := channels.Factory{Network: "null", Options: func() any { return &struct{}{} },
		New: func(string, any, channels.Deps) (channels.Channel, error) { return net, nil }}
	dir := b.TempDir()
	conf := filepath.Join(dir, "parley.yaml")
	text := "data_dir: " + dir + "/data\ngateway: {listen: \"127.0.0.1:0\"}\nmodels: [{name: m, api: offline}]\nchannels: [{name: n, type: \"null\", access: {dm: open}}]\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	none := func(string) (string, bool) { return "", false }
	src := source.New(configs.LoadOptions{Path: conf, Sections: []configs.Section{{Type: "null", Options: f.Options}}, Env: none})
	if _, err := src.Load(); err != nil {
		b.Fatal(err)
	}
	g := New(Options{Source: src, Sandbox: sandbox.New(sandbox.Config{Backend: "none"}, sandbox.Deps{}), Channels: []channels.Factory{f}, Env: none})
	if err := g.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Stop(ctx); err != nil {
			b.Error(err)
		}
	})
	return g
}
