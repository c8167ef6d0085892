package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// strict reads exactly one JSON value without unknown fields. Its errors name no Go types.
func strict(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return errors.New(kind.Field + " cannot be a " + kind.Value)
	case errors.As(err, &kind):
		return errors.New("it must be an object")
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is no JSON")
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}
