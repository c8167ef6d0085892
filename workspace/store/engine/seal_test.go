package engine

import "testing"

func TestASealTellsValuesApart(t *testing.T) {
	t.Parallel()
	price := 1.5
	seen := map[int64]int{}
	for i, values := range [][]any{
		{}, {nil}, {""}, {"", ""}, {int64(0)}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {int64(97)}, {"a"}, {price}, {nil, nil},
		{int64(1), int64(0)}, {int64(0), int64(1)},
	} {
		if other, ok := seen[Seal(values...)]; ok {
			t.Errorf("%d and %d have one seal", other, i)
		}
		seen[Seal(values...)] = i
	}
	if Seal(7, &price, "x\x00") != Seal(int64(7), price, "x\uFFFD") {
		t.Error("a value as it is given and as it is stored have two seals")
	}
}
