//go:build !race

package gateway_test

const slower = 1
