package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"parley/workspace/clip"
)

// Size is a number of bytes.
type Size int64

type unit struct {
	name  string
	bytes int64
}

// sizeUnits are the units of a size: four binary ones, then four decimal ones.
func sizeUnits() []unit {
	return []unit{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	}
}

// String writes the largest binary unit that divides it: 512MiB.
func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if u := sizeUnits()[i]; s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// ParseSize reads a whole number with its unit: 1024B, 64KiB, 512MiB, 2GB.
func ParseSize(text string) (Size, error) {
	digits := strings.TrimRight(text, "BKMGTikb")
	unit := text[len(digits):]
	scale := int64(0)
	if unit == "B" {
		scale = 1
	}
	for _, u := range sizeUnits() {
		if u.name == unit {
			scale = u.bytes
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || scale == 0 {
		return 0, fmt.Errorf("%s is not a size: write a whole number with its unit, such as 512MiB", quote(text))
	}
	if n > math.MaxInt64/scale {
		return 0, fmt.Errorf("%s is too large a size", quote(text))
	}
	return Size(n * scale), nil
}

// ParseDuration reads what time.ParseDuration reads, and whole days and weeks: 90d, 2w. A number without a unit is refused,
// but for 0.
func ParseDuration(text string) (time.Duration, error) {
	bad := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("%s is not a duration: %s", quote(text), why)
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && text != "0" {
		return bad("it needs a unit, such as " + text + "s or " + text + "m")
	}
	for suffix, hours := range map[string]int64{"d": 24, "w": 7 * 24} {
		if days, ok := strings.CutSuffix(text, suffix); ok {
			n, err := strconv.ParseInt(days, 10, 64)
			if err != nil || n < 0 || n > math.MaxInt64/int64(time.Hour)/hours {
				return bad("write a whole number of days (d) or weeks (w)")
			}
			return time.Duration(n*hours) * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return bad("write a number with its unit, such as 500ms, 30s, 10m, 2h or 90d")
	}
	if d < 0 {
		return bad("it may not be negative")
	}
	return d, nil
}

// formatDuration is the shortest text that ParseDuration reads back: 90d, 10m, 1500ms.
func formatDuration(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}}
	if d == 0 {
		return "0"
	}
	for _, u := range units {
		if d%u.size == 0 {
			return strconv.FormatInt(int64(d/u.size), 10) + u.name
		}
	}
	return d.String()
}

// quote shows what somebody wrote, shortened; control characters are escaped.
func quote(text string) string {
	return strconv.Quote(clip.Runes(text, 81))
}
