// Package configs is the plan of the house: one YAML file read into a typed Config, with every default filled in and every
// problem told at once with its line. The tags of the structs are the single source of defaults, documentation, JSON Schema
// and checks.
//
// It imports nothing of Parley's. An adapter's options come in as values (Section), so that its keys are checked, documented and
// masked like our own. It opens no database, talks to no network and decides nothing: what a key means is its reader's
// business.
//
// It owns one goroutine: Source.Watch runs on its caller's and ends with its context.
package configs
