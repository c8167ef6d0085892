package builtin

import (
	"errors"

	"parley/workspace"
	"parley/workspace/disk"
)

// fillers is how many of the largest things are named.
const fillers = 3

// clearing says how a folder is made smaller, and what fills it the most.
func clearing(root *workspace.Root) string {
	text := "remove what is not needed with remove_file; the person can with /files"
	if rep, err := root.Filled(); err == nil {
		if list := workspace.Filling(rep, fillers); list != "" {
			text += "; the largest: " + list
		}
	}
	return text
}

// whyFull is the reason of a refusal.
func whyFull(err error) string {
	var full *disk.Error
	if errors.As(err, &full) {
		return full.Error()
	}
	return "there is no space"
}

// sayFull says of a lack of space how to come by some.
func sayFull(root *workspace.Root, err error) error {
	var pe *workspace.PathError
	if errors.As(err, &pe) && errors.Is(err, workspace.ErrSpace) {
		return workspace.Say(err, "%s; %s.", pe.Error(), clearing(root))
	}
	return err
}
