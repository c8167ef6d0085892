package routes_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/routes"
	"parley/workspace"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func stranger(id string) workspace.Pairing {
	return workspace.Pairing{ID: id, Channel: "tg", Network: "telegram", Account: "bot1", User: "7", Name: "Ana"}
}

// asked is an open request whose code was issued at the given time.
func asked(t *testing.T, id, code string, at time.Time) workspace.Pairing {
	t.Helper()
	p, send := routes.AskPairing(workspace.Pairing{}, stranger(id), code, at)
	if !send || p.State != workspace.PairingOpen || p.User != "7" || !p.Requested.Equal(at) {
		t.Fatalf("first request: %+v, send %t", p, send)
	}
	return p
}

func TestT09_CodesAreFortyRandomBitsOfReadableLetters(t *testing.T) {
	t.Parallel()
	const n = 4000
	seen := map[string]bool{}
	used := [8]map[byte]int{}
	for range n {
		code := routes.NewCode()
		if len(code) != 9 || code[4] != '-' || strings.ContainsAny(code, "0O1Il") {
			t.Fatalf("code %q", code)
		}
		seen[code] = true
		for i, c := range []byte(code[:4] + code[5:]) {
			if used[i] == nil {
				used[i] = map[byte]int{}
			}
			used[i][c]++
		}
	}
	if len(seen) < n-1 {
		t.Errorf("%d codes of %d are different", len(seen), n)
	}
	for i, letters := range used { // 5 bits in each of 8 places; 125 of each letter are expected, sd 11
		if len(letters) != 32 {
			t.Errorf("place %d uses %d letters, want 32", i, len(letters))
		}
		for c, count := range letters {
			if count < 50 || count > 200 {
				t.Errorf("place %d has %q %d times of %d", i, c, count, n)
			}
		}
	}
}

func TestT09_OnlyTheHashOfACodeIsKept(t *testing.T) {
	t.Parallel()
	p := asked(t, "A", "ABCD-2345", noon)
	if len(p.CodeHash) != 64 || strings.Contains(strings.ToUpper(p.CodeHash), "ABCD2345") {
		t.Errorf("stored %q", p.CodeHash)
	}
}

func TestCodesAreReadAsPeopleTypeThem(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"ABCD-2345": "ABCD2345", "abcd2345": "ABCD2345", " ab cd-23 45\n": "ABCD2345",
		"": "", "ABCD-234": "", "ABCD-23456": "", "ABCD-234O": "", "ABCD-2340": "", "ABCD_2345": "", "ÄBCD-2345": "",
	} {
		got, ok := routes.NormalizeCode(typed)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %t", typed, got, ok)
		}
		if ok != (routes.CodeHash(typed) != "") {
			t.Errorf("%q: hash %q", typed, routes.CodeHash(typed))
		}
	}
}

func TestT09_CodeLivesTenMinutes(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]error{
		0: nil, routes.CodeLife - time.Nanosecond: nil,
		routes.CodeLife: routes.ErrCodeExpired, 24 * time.Hour: routes.ErrCodeExpired, -time.Hour: routes.ErrCodeExpired,
	} {
		p := asked(t, "A", "ABCD-2345", noon)
		_, _, err := routes.RedeemCode([]workspace.Pairing{p}, "abcd2345", "ana", noon.Add(after))
		if !errors.Is(err, want) {
			t.Errorf("after %v: %v, want %v", after, err, want)
		}
	}
}

func TestT09_CodeIsUsedOnceByOneOwner(t *testing.T) {
	t.Parallel()
	requests := []workspace.Pairing{asked(t, "A", "ABCD-2345", noon), asked(t, "B", "WXYZ-6789", noon)}
	got, changed, err := routes.RedeemCode(requests, "wxyz-6789", "ana", noon.Add(time.Minute))
	if err != nil || got.ID != "B" || got.State != workspace.PairingApproved || got.DecidedBy != "ana" || got.CodeHash != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(changed) != 1 || changed[0] != got {
		t.Errorf("to store: %+v", changed)
	}
	requests[1] = got
	if _, _, err := routes.RedeemCode(requests, "wxyz-6789", "ana", noon.Add(time.Minute)); !errors.Is(err, routes.ErrCodeWrong) {
		t.Errorf("a second time: %v", err)
	}
	if requests[0].State != workspace.PairingOpen || requests[0].Tries != 0 {
		t.Errorf("the other request: %+v", requests[0])
	}
}

func TestT09_FiveWrongCodesSpoilTheRightOne(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[int]error{0: nil, 4: nil, 5: routes.ErrCodeTries, 9: routes.ErrCodeTries} {
		requests := []workspace.Pairing{asked(t, "A", "ABCD-2345", noon)}
		for i := range wrong {
			_, changed, err := routes.RedeemCode(requests, []string{"ZZZZ-ZZZZ", "", "nonsense"}[i%3], "ana", noon)
			if !errors.Is(err, routes.ErrCodeWrong) {
				t.Fatalf("wrong code: %v", err)
			}
			copy(requests, changed)
		}
		if _, _, err := routes.RedeemCode(requests, "ABCD-2345", "ana", noon); !errors.Is(err, want) {
			t.Errorf("after %d wrong codes: %v, want %v", wrong, err, want)
		}
		if _, err := routes.DecidePairing(requests[0], workspace.PairingApproved, "ana", noon); err != nil {
			t.Errorf("after %d wrong codes, by its id: %v", wrong, err)
		}
	}
}

func TestT09_OneCodeInTenMinutesForOneSender(t *testing.T) {
	t.Parallel()
	p := asked(t, "A", "ABCD-2345", noon)
	p.Tries = 5
	if q, send := routes.AskPairing(p, stranger("B"), "WXYZ-6789", noon.Add(routes.CodeLife-time.Nanosecond)); send || q != p {
		t.Errorf("too soon: %+v, send %t", q, send)
	}
	q, send := routes.AskPairing(p, stranger("B"), "WXYZ-6789", noon.Add(routes.CodeLife))
	if !send || q.ID != "A" || q.Tries != 0 || !q.Requested.Equal(noon) {
		t.Errorf("ten minutes later: %+v, send %t", q, send)
	}
	if _, _, err := routes.RedeemCode([]workspace.Pairing{q}, "ABCD-2345", "ana", noon.Add(routes.CodeLife)); !errors.Is(err, routes.ErrCodeWrong) {
		t.Errorf("the first code after the second was sent: %v", err)
	}
}

func TestT09_RequestLivesSevenDays(t *testing.T) {
	t.Parallel()
	p := asked(t, "A", "ABCD-2345", noon)
	last := noon.Add(routes.RequestLife - time.Nanosecond)
	if q, err := routes.DecidePairing(p, workspace.PairingApproved, "ana", last); err != nil || q.State != workspace.PairingApproved || !q.Decided.Equal(last) {
		t.Errorf("by its id on the seventh day: %+v, %v", q, err)
	}
	if _, err := routes.DecidePairing(p, workspace.PairingApproved, "ana", noon.Add(routes.RequestLife)); !errors.Is(err, routes.ErrRequestGone) {
		t.Errorf("later: %v", err)
	}
	if !routes.PairingOpen(p, last) || routes.PairingOpen(p, noon.Add(routes.RequestLife)) {
		t.Error("open is not what the seven days say")
	}
	q, send := routes.AskPairing(p, stranger("B"), "WXYZ-6789", noon.Add(routes.RequestLife))
	if !send || q.ID != "B" || !q.Requested.Equal(noon.Add(routes.RequestLife)) {
		t.Errorf("asked again after seven days: %+v, send %t", q, send)
	}
}

func TestT09_ADeniedSenderHearsNothingMore(t *testing.T) {
	t.Parallel()
	p, err := routes.DecidePairing(asked(t, "A", "ABCD-2345", noon), workspace.PairingDenied, "ana", noon)
	if err != nil || p.State != workspace.PairingDenied {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := routes.DecidePairing(p, workspace.PairingApproved, "ana", noon); !errors.Is(err, routes.ErrDecided) {
		t.Errorf("approved after a denial: %v", err)
	}
	if _, send := routes.AskPairing(p, stranger("B"), "WXYZ-6789", noon.Add(6*24*time.Hour)); send {
		t.Error("a code six days after the denial")
	}
	if _, send := routes.AskPairing(p, stranger("B"), "WXYZ-6789", noon.Add(8*24*time.Hour)); !send {
		t.Error("no code once the denied request is gone")
	}
}

func TestAPersonWhoWasRemovedMayAskAgain(t *testing.T) {
	t.Parallel()
	p, err := routes.DecidePairing(asked(t, "A", "ABCD-2345", noon), workspace.PairingApproved, "ana", noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, send := routes.AskPairing(p, stranger("B"), "WXYZ-6789", noon.Add(time.Minute)); send {
		t.Error("a second code within ten minutes")
	}
	if q, send := routes.AskPairing(p, stranger("B"), "WXYZ-6789", noon.Add(time.Hour)); !send || q.ID != "B" {
		t.Errorf("an hour later: %+v, send %t", q, send)
	}
}

func TestDecidePairingKnowsTwoAnswers(t *testing.T) {
	t.Parallel()
	if _, err := routes.DecidePairing(asked(t, "A", "ABCD-2345", noon), workspace.PairingOpen, "ana", noon); !errors.Is(err, workspace.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestEveryPairingRefusalHasASentence(t *testing.T) {
	t.Parallel()
	p := asked(t, "A", "ABCD-2345", noon)
	spoilt, decided := p, p
	spoilt.Tries, decided.State = routes.CodeTries, workspace.PairingDenied
	_, _, wrong := routes.RedeemCode([]workspace.Pairing{p}, "ZZZZ-ZZZZ", "ana", noon)
	_, _, late := routes.RedeemCode([]workspace.Pairing{p}, "ABCD-2345", "ana", noon.Add(time.Hour))
	_, _, tries := routes.RedeemCode([]workspace.Pairing{spoilt}, "ABCD-2345", "ana", noon)
	_, again := routes.DecidePairing(decided, workspace.PairingApproved, "ana", noon)
	_, gone := routes.DecidePairing(p, workspace.PairingApproved, "ana", noon.Add(30*24*time.Hour))
	for _, err := range []error{wrong, late, tries, again, gone} {
		if s, ok := workspace.Sentence(err); !ok || s == "" || strings.Contains(s, "ABCD") {
			t.Errorf("%v is told as %q", err, s)
		}
	}
}

// Whatever happens in whatever order, with a clock that jumps: a request is decided once, never after seven days,
// never by a code that is old, spoilt or not its own, and codes go out ten minutes apart.
func TestT09_PairingHoldsOverAnyHistory(t *testing.T) {
	t.Parallel()
	codes := []string{"AAAA-2222", "BBBB-3333", "CCCC-4444"}
	rapid.Check(t, func(t *rapid.T) {
		now, last := noon, workspace.Pairing{}
		var sent time.Time
		var sentCode string
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Minute, 9 * time.Minute, time.Hour, 3 * 24 * time.Hour, -time.Hour, -3 * time.Minute}).Draw(t, "later"))
			code := rapid.SampledFrom(codes).Draw(t, "code")
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0, 1:
				before := last
				next, send := routes.AskPairing(last, stranger("N"), code, now)
				last = next
				if !send {
					if last != before {
						t.Fatalf("changed without a code: %+v", last)
					}
					continue
				}
				if age := now.Sub(sent); sentCode != "" && age >= 0 && age < routes.CodeLife {
					t.Fatalf("two codes within %v", age)
				}
				sent, sentCode = now, code
			case 2:
				was := last
				got, changed, err := routes.RedeemCode([]workspace.Pairing{last}, code, "ana", now)
				for _, c := range changed {
					last = c
				}
				age := now.Sub(was.Issued)
				right := was.State == workspace.PairingOpen && code == sentCode && age >= 0 && age < routes.CodeLife &&
					was.Tries < routes.CodeTries && now.Sub(was.Requested) < routes.RequestLife
				if right != (err == nil) || right != (got.State == workspace.PairingApproved) {
					t.Fatalf("%+v with %s at %v: %+v, %v", was, code, now, got, err)
				}
			case 3:
				was := last
				got, err := routes.DecidePairing(last, workspace.PairingDenied, "ana", now)
				if (err == nil) != (was.State == workspace.PairingOpen && now.Sub(was.Requested) < routes.RequestLife) {
					t.Fatalf("%+v at %v: %v", was, now, err)
				}
				last = got
			}
		}
	})
}

func FuzzCode(f *testing.F) {
	f.Add("ABCD-2345")
	f.Add("abcd 2345")
	f.Add("\u0130\u0131ſK-2345") // letters whose upper case is something else
	f.Fuzz(func(t *testing.T, s string) {
		code, ok := routes.NormalizeCode(s)
		if !ok {
			return
		}
		again, ok := routes.NormalizeCode(code)
		if !ok || again != code || len(code) != 8 || routes.CodeHash(s) != routes.CodeHash(code) {
			t.Errorf("%q is %q, then %q", s, code, again)
		}
	})
}
