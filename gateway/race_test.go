//go:build race

package gateway_test

// slower says that the race detector watches: loads are smaller then, orders and counts are what they are.
const slower = 4
