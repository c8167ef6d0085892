package wire

import (
	"fmt"
	"net/http"
	"strconv"
)

// Page is what a reader asks for.
type Page struct {
	Limit int
	After string
}

const (
	defaultPage = 50
	maxPage     = 500
)

// PageOf reads ?limit= and ?after=.
func PageOf(r *http.Request) (Page, error) {
	q := r.URL.Query()
	p := Page{Limit: defaultPage, After: q.Get("after")}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return p, Invalid(fmt.Sprintf("limit is a number from 1 to %d.", maxPage))
		}
		p.Limit = n
	}
	return p, nil
}

// Number reads a query parameter that counts.
func Number(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, Invalid(name + " is a number from 0.")
	}
	return n, nil
}
