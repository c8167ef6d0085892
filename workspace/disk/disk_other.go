//go:build !linux

package disk

import "os"

// roomAt is not known here.
func roomAt(string) (room, bool) { return room{}, false }

func roomOf(*os.File) (room, bool) { return room{}, false }
