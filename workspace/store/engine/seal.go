// Seals and sums of rows, and what both databases can keep.

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sealed is a table with what of its rows can be held against something: a seal over columns that never change, and whatever
// Check makes of the rest.
type Sealed struct {
	Table   string
	Columns string // sealed ones; the first Keys of them are the key
	Rest    string // what Check is given
	Keys    int
	Check   func(rest []any) bool
}

// Verify reads all rows in pieces. ErrDamaged names the first that is wrong.
func (t Sealed) Verify(ctx context.Context, r *Reader) error {
	columns := strings.Split(t.Columns, ",")
	key := strings.Join(columns[:t.Keys], ",")
	from := make([]any, t.Keys)
	where := ""
	for {
		q := `SELECT ` + t.Columns + `, seal, ` + t.Rest + ` FROM ` + t.Table + where + ` ORDER BY ` + key + ` LIMIT ` + strconv.Itoa(PieceRows)
		rows, err := r.Piece(ctx, q, from[:strings.Count(where, "?")]...)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if n := len(columns); Seal(row[:n]...) != row[n] || !t.Check(row[n+1:]) {
				return fmt.Errorf("%s %v: %w", t.Table, row[:t.Keys], ErrDamaged)
			}
			copy(from, row)
		}
		if len(rows) < PieceRows {
			return nil
		}
		where = ` WHERE (` + key + `) > (?` + strings.Repeat(", ?", t.Keys-1) + `)`
	}
}

// Seal is the crc32c of values as both databases give them back: each text with its length, each number in eight
// bytes, an absent value as one byte.
func Seal(values ...any) int64 {
	var sum uint32
	table := castagnoli()
	var buf [9]byte
	for _, v := range values {
		head := buf[:]
		switch v := v.(type) {
		case string:
			v = Clean(v)
			buf[0] = 's'
			binary.LittleEndian.PutUint64(buf[1:], uint64(len(v)))
			sum = crc32.Update(crc32.Update(sum, table, head), table, []byte(v))
			continue
		case int:
			buf[0] = 'i'
			binary.LittleEndian.PutUint64(buf[1:], uint64(v))
		case int64:
			buf[0] = 'i'
			binary.LittleEndian.PutUint64(buf[1:], uint64(v))
		case *float64:
			if v == nil {
				buf[0], head = 0, buf[:1]
				break
			}
			buf[0] = 'f'
			binary.LittleEndian.PutUint64(buf[1:], math.Float64bits(*v))
		case float64:
			buf[0] = 'f'
			binary.LittleEndian.PutUint64(buf[1:], math.Float64bits(v))
		default:
			buf[0], head = 0, buf[:1]
		}
		sum = crc32.Update(sum, table, head)
	}
	return int64(sum)
}

// castagnoli is a table that package crc32 makes once and then hands out.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Sum is the crc32c of a payload.
func Sum(body string) int64 { return int64(crc32.Checksum([]byte(body), castagnoli())) }

// SumPair is the crc32c of a, 0x00, b.
func SumPair(a, b string) int64 {
	castagnoli := castagnoli()
	c := crc32.Update(0, castagnoli, []byte(a))
	c = crc32.Update(c, castagnoli, []byte{0})
	return int64(crc32.Update(c, castagnoli, []byte(b)))
}

// storable makes an argument what both databases can keep.
func storable(a any) any {
	switch v := a.(type) {
	case string:
		return Clean(v)
	case int:
		return int64(v)
	case *float64:
		if v == nil {
			return nil
		}
		return *v
	}
	return a
}

// Clean drops what PostgreSQL cannot keep in text: NUL; and repairs invalid UTF-8.
func Clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
