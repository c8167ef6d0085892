package spec

import "strconv"

// Page is what a reader asks for of a list.
type Page struct {
	Limit int    `query:"limit" help:"how *many* at most" min:"1" max:"500" default:"50"`
	After string `query:"after" help:"where to go on: *next* of the page before"`
}

// List is a page of a list.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"` // null: there is no more
}

// Whole is a list of one page.
func Whole[T any](items []T) List[T] { return List[T]{Items: append([]T{}, items...)} }

// PageOf makes a page of what was asked for with one item more than the limit.
func PageOf[T any](items []T, limit int, cursor func(T) string) List[T] {
	if len(items) <= limit {
		return Whole(items)
	}
	next := cursor(items[limit-1])
	return List[T]{Items: items[:limit], Next: &next}
}

// GoOn says where the next page begins.
func (l *List[T]) GoOn(n int64) {
	text := strconv.FormatInt(n, 10)
	l.Next = &text
}
