// Package wire reads what clients send and writes what they get: strict JSON, pages of lists, problems of RFC 9457, answers
// without secrets. It decides nothing, and starts no goroutine.
package wire
