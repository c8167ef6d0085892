package store

import (
	"encoding/json"
	"fmt"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// Hear keeps the transcript of attachment n of an input that no turn has taken yet, and returns after the commit. What
// is kept already stays as it is and is returned. workspace.ErrConflict means that the input waits no more.
func (s *Store) Hear(id workspace.InputID, n int, text string) (string, error) {
	kept := ""
	err := s.do("hear", func(t *tx) error {
		var seq int64
		var words, body string
		if err := t.Row(`SELECT seq, text, data FROM inputs WHERE id = ? AND state = 'queued'`, []any{string(id)}, &seq, &words, &body); err != nil {
			return fmt.Errorf("keep a transcript: %w", orConflict(err))
		}
		var data workspace.InputData
		if err := decode(body, &data); err != nil {
			return fmt.Errorf("keep a transcript: %w", err)
		}
		if was, ok := data.Heard[n]; ok {
			kept = was
			return nil
		}
		if data.Heard == nil {
			data.Heard = map[int]string{}
		}
		kept = engine.Clean(text)
		data.Heard[n] = kept
		now, err := json.Marshal(data)
		if err != nil {
			return err
		}
		return t.One("keep a transcript", `UPDATE inputs SET data = ?, sum = ? WHERE seq = ? AND state = 'queued'`,
			string(now), engine.SumPair(words, string(now)), seq)
	})
	return kept, err
}
