package storetest

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"parley/workspace/store"
)

// TestMain lets the model live 30 times instead of 100 where nobody says otherwise: a life takes up to a second
// under the race detector. PARLEY_FULL=1 lets it live longer, and 300 times.
func TestMain(m *testing.M) {
	flag.Parse()
	lives, said := "30", false
	if os.Getenv("PARLEY_FULL") == "1" {
		lives = "300"
	}
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "rapid.checks" })
	if !said {
		if err := flag.Set("rapid.checks", lives); err != nil {
			panic(err) // rapid has renamed its flag
		}
	}
	goleak.VerifyTestMain(m)
}

// SQLite passes the suite in store's own tests, which look at the plans of its queries too.
func TestPostgresPassesTheSuite(t *testing.T) {
	t.Parallel()
	Postgres(t) // skips or fails once, aloud
	Run(t, func(t testing.TB) *store.Store { return Postgres(t).Open(t) })
}
