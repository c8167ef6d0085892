// Package routes answers two questions about an inbound event, from values alone: may this person speak here
// (Gate), and which agent and session will answer (Table). It also holds the rules of pairing codes.
//
// It reads no file, no clock and no database, sends nothing and starts no goroutine: whoever calls it looks up
// the Facts first and acts on the answer afterwards. That is why a table of cases can cover it.
package routes
