package edit

import (
	"strings"
	"testing"
)

// A large text, in lines or on one, is shown and comes back. With work that grows by the square of it this would not end.
func TestLargeTextsComeBack(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"flow":  "a: [" + strings.Repeat("{b: 1, token: x}, ", 8_000) + "{b: 2}]\n",
		"block": "a:\n" + strings.Repeat("  - b: 1\n    token: x\n", 8_000),
		"deep":  "a: " + strings.Repeat("[", 5000) + "1" + strings.Repeat("]", 5000) + "\n",
	} {
		list, err := Scalars([]byte(text))
		if name != "deep" {
			m := Masks{Keys: []string{"token"}}
			v, err := m.Show([]byte(text))
			if err != nil || strings.Count(string(v.Text), Mask) != 8_000 {
				t.Errorf("%s: %d masks, %v", name, strings.Count(string(v.Text), Mask), err)
			}
			if back, err := m.Restore([]byte(text), v.Text); err != nil || string(back) != text {
				t.Errorf("%s: it does not come back: %v", name, err)
			}
		}
		if name != "deep" && (err != nil || len(list) < 16_000) {
			t.Errorf("%s: %d values, %v", name, len(list), err)
		}
	}
}
