package configs

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

var (
	idFormat    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	clockFormat = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)
)

// isName says whether a text of 1 to 64 characters has neither white space nor control characters in it. As a regular
// expression this takes 2 MB and a third of the time to start.
func isName(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= 1 && n <= 64 && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.C, r) })
}

// checkTags holds every key of c against its own tags.
func (r *report) checkTags(c *Config) {
	walk("", reflect.ValueOf(c).Elem(), func(path string, v reflect.Value, tag reflect.StructTag) bool {
		if r.failed[path] {
			return false
		}
		r.checkOne(path, v, tag)
		return true
	})
}

func (r *report) checkOne(path string, v reflect.Value, tag reflect.StructTag) {
	switch {
	case v.Kind() == reflect.Slice:
		r.checkList(path, v, tag)
	case v.Kind() == reflect.String:
		r.checkText(path, v.String(), tag)
	case isScalar(v.Type()):
		r.checkRange(path, v, tag)
	}
}

func (r *report) checkList(path string, v reflect.Value, tag reflect.StructTag) {
	if most, err := strconv.Atoi(tag.Get("maxitems")); err == nil && v.Len() > most {
		r.add(path, "may have at most %d items, not %d", most, v.Len())
	}
	if v.Type().Elem().Kind() != reflect.String || tag.Get("blank") == "true" {
		return
	}
	for i := range v.Len() {
		if v.Index(i).String() == "" {
			r.add(item(path, i), "is empty: remove the item or give it a value")
		}
	}
}

func (r *report) checkText(path, text string, tag reflect.StructTag) {
	if text == "" {
		if tag.Get("required") == "true" {
			r.add(path, "is required: %s", firstSentence(tag.Get("doc")))
		}
		return
	}
	if list, ok := tag.Lookup("enum"); ok {
		values := strings.Split(list, "|")
		if !slices.Contains(values, text) {
			named := slices.DeleteFunc(values, func(s string) bool { return s == "" })
			r.add(path, "must be one of %s, not %s", strings.Join(named, ", "), r.quote(path, text))
		}
		return
	}
	if err := checkFormat(tag.Get("format"), text); err != nil {
		r.add(path, "%s, not %s", err, r.quote(path, text))
	}
}

// checkFormat says what a text of the format must be, when it is not.
func checkFormat(format, text string) error {
	switch format {
	case "id":
		if !idFormat.MatchString(text) {
			return fmt.Errorf("must be 1 to 64 letters, digits, - _ or ., beginning with a letter or digit")
		}
	case "name":
		if !isName(text) {
			return fmt.Errorf("must be 1 to 64 characters without spaces")
		}
	case "clock":
		if !clockFormat.MatchString(text) {
			return fmt.Errorf(`must be a time of day such as "04:00"`)
		}
	case "hours":
		from, to, ok := strings.Cut(text, "-")
		if !ok || !clockFormat.MatchString(from) || !clockFormat.MatchString(to) || from == to {
			return fmt.Errorf(`must be hours of the day such as "08:00-22:00"`)
		}
	case "zone":
		if _, err := time.LoadLocation(text); err != nil || text == "Local" {
			return fmt.Errorf("must be an IANA time zone such as Europe/Berlin")
		}
	case "sha256":
		if b, err := hex.DecodeString(text); err != nil || len(b) != 32 {
			return fmt.Errorf("must be 64 hex digits")
		}
	}
	return nil
}

// checkRange holds a number, duration or size against min and max.
func (r *report) checkRange(path string, v reflect.Value, tag reflect.StructTag) {
	low, high := tag.Get("min"), tag.Get("max")
	if v.IsZero() && tag.Get("zero") != "" || low == "" && high == "" {
		return
	}
	below := low != "" && amount(v) < amountOf(low, v.Type())
	above := high != "" && amount(v) > amountOf(high, v.Type())
	if !below && !above {
		return
	}
	or := ""
	if zero := tag.Get("zero"); zero != "" {
		or = ", or 0 (" + zero + ")"
	}
	switch {
	case high == "":
		r.add(path, "must be at least %s%s, not %s", low, or, show(v))
	case low == "":
		r.add(path, "must be at most %s%s, not %s", high, or, show(v))
	default:
		r.add(path, "must be between %s and %s%s, not %s", low, high, or, show(v))
	}
}

func amount(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return 0
}

// amountOf reads a min or max tag. The tags are our own; a test reads them all.
func amountOf(text string, t reflect.Type) float64 {
	switch t {
	case reflect.TypeFor[time.Duration]():
		d, _ := ParseDuration(text)
		return float64(d)
	case reflect.TypeFor[Size]():
		s, _ := ParseSize(text)
		return float64(s)
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// show is a number, duration or size as one would write it.
func show(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	default:
		return fmt.Sprint(x)
	}
}

func firstSentence(doc string) string {
	if doc == "" {
		return "it has no default"
	}
	sentence, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(sentence, ".")
}
