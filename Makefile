# One screen. What a target does stands beside it; `make help` prints that.
GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FLAGS    := -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
PREFIX   ?= $(HOME)/.local
PKG      ?= ./...
FUZZTIME ?= 10s
KILLS    ?= 20
ROUNDS   ?= 5
# The race detector looks away from three packages: two of whatsmeow's, one of which reads its connection without a lock while
# a line ends and one of which has two waiters say so under a lock for readers, and SQLite as translated from C, which takes four
# times as long under it. None of them makes generic code, which others would share.
QUIET    := $(addprefix -gcflags=,$(addsuffix =-race=false,go.mau.fi/whatsmeow/socket go.mau.fi/util/exsync modernc.org/sqlite/lib))
LINTER   := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help build install run check full race storms lint fuzz crash bench house ids escapes ui shots fresh

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## make bin/parley, one static binary
	CGO_ENABLED=0 $(GO) build $(FLAGS) -o bin/parley ./cmd/parley

install: build ## put parley into PREFIX/bin (~/.local/bin), and say whether the shell finds it there
	@mkdir -p "$(PREFIX)/bin" && install -m 755 bin/parley "$(PREFIX)/bin/parley" && echo "Installed: $(PREFIX)/bin/parley"
	@found=$$(command -v parley || true); case "$$found" in \
		"$(PREFIX)/bin/parley") echo "It is on your PATH. Next: parley onboard";; \
		"") echo "$(PREFIX)/bin is not on your PATH. Add it, here and in ~/.profile:"; echo '  export PATH="$(PREFIX)/bin:$$PATH"'; \
			echo "Next: parley onboard";; \
		*) echo "Your PATH leads to another one first: $$found. Next: $(PREFIX)/bin/parley onboard";; esac

run: build ## start the gateway; in a terminal also a chat with it, and both end together
	@if [ -t 0 ] && [ -t 1 ]; then umask 077; set -m; bin/parley gateway >bin/gateway.out 2>bin/gateway.log & gateway=$$!; set +m; \
		trap 'kill $$gateway 2>/dev/null; wait $$gateway' EXIT; trap : INT; trap exit HUP TERM; \
		until grep -qs WebChat: bin/gateway.out; do sleep 0.1; kill -0 $$gateway 2>/dev/null || \
			{ grep '^parley:' bin/gateway.log || tail -n 5 bin/gateway.log; exit 1; }; done; cat bin/gateway.out; \
		bin/parley chat || { tail -n 5 bin/gateway.log; exit 1; }; \
	else exec bin/parley gateway; fi

check: ## the gate, the same here and in CI: two lanes, first the tests under the race detector beside what only reads
	@$(MAKE) --no-print-directory -j2 race lint ids fresh
	@$(MAKE) --no-print-directory -j2 escapes storms

full: check ## the gate, then all that takes longer
	PARLEY_CALLS=10000 .ci/escapes
	$(MAKE) fuzz FUZZTIME=60s
	$(MAKE) crash KILLS=500
	$(GO) test -race $(QUIET) -count=5 -timeout 60m $(PKG)

race: ## every test under the race detector, on SQLite and on PostgreSQL
	.ci/browser .ci/postgres $(GO) test -race $(QUIET) -parallel 4 -timeout 20m $(PKG)

storms: ## without the race detector: what kills, traces or storms the daemon, whatsmeow, which races by itself, and a look at all types
	$(GO) test -run 'OnWhatsApp|EveryKey' ./gateway ./configs
	$(GO) test -parallel 4 ./gateway/crashtest

lint: ## gofmt, vet and staticcheck
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt -w" $$unformatted; exit 1; }
	$(GO) vet $(PKG)
	$(GO) vet -tags sandboxweak ./tools/sandbox/...
	@! $(GO) build -o /dev/null -tags sandboxweak ./cmd/parley 2>/dev/null || { echo "the program builds with the switches that weaken the sandbox"; exit 1; }
	$(GO) run $(LINTER) $(PKG)
	$(GO) run $(LINTER) -tags sandboxweak ./tools/sandbox/...

fuzz: ## each fuzz test for FUZZTIME (10s)
	@mkdir -p bin; for p in $$($(GO) list $(PKG)); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p >bin/fuzz.log || { cat bin/fuzz.log; exit 1; }; done; done

crash: ## kill the daemon KILLS times (20) under load, damage data directories 1,000 times; nothing may be lost unsaid
	PARLEY_KILLS=$(KILLS) $(GO) test -count=1 -timeout 60m -v ./gateway/crashtest
	PARLEY_DAMAGES=1000 $(GO) test -count=1 -timeout 60m -run 'R18_R19' -v ./workspace/store

bench: ## the numbers beside a bare echo bot's, ROUNDS (5) alternating rounds: nine minutes; with BASE, a parley or a checkout, compared with it: 28
	PARLEY_BENCH_ROUNDS=$(ROUNDS) PARLEY_BENCH_BASE=$(if $(BASE),$(abspath $(BASE))) .ci/browser $(GO) test -run '^$$' -bench '^Benchmark(Table|WebChat|Exec)$$' -benchtime 1x -timeout 60m -p 1 ./gateway/benchtest ./cmd/parley

house: ## print the shape of the tree: files, lines, arrows, components, widest types, per package
	@$(GO) run ./cmd/house $(HOUSE)

ui: ## build the WebChat page into channels/webchat/ui/dist, which is committed and embedded
	cd channels/webchat/ui && npm ci --ignore-scripts --no-audit --no-fund && npm run types && npm run build

shots: ## take the pictures of WebChat that somebody has to look at, into bin/shots
	PARLEY_SHOOT=1 .ci/browser $(GO) test -count=1 -run '^TestShots$$' -v ./cmd/parley

escapes: ## every escape of the threat model, as root and as nobody, and its broken launchers
	@.ci/escapes

fresh: ## the embedded page is the one that its sources make
	@.ci/ui

ids: ## every promise that is due has a test with its id
	@.ci/ids
