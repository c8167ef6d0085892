package run

import (
	"context"
	"errors"
	"os"

	"parley/gateway/control"
	"parley/workspace"
	"parley/workspace/lazy"
)

// kept is the end of a command's result whose middle was cut out, as tools/builtin writes it: the file that holds all of
// it. What a command writes itself may look like it; then it leads to another output of the same work folder, or nowhere.
var kept = lazy.Regexp(`\n\(\d+ bytes in all; the middle is cut out; (?:all of it is|its first \d+ bytes are) in ` +
	`(\.output/[A-Za-z0-9_][A-Za-z0-9_.-]{0,100}), which read_file shows\)\n\([^\n]*\)$`)

// Output opens the file with all that a command of a run wrote, as it is: bytes of a stranger. It is there as long as
// the work folder has it. The caller closes it.
func (c *Runs) Output(ctx context.Context, call control.Call, run control.RunWord, callID string) (*os.File, error) {
	if err := c.Allow(call, "run.output"); err != nil {
		return nil, err
	}
	v, err := c.Read(ctx, call, run)
	if err != nil {
		return nil, err
	}
	missing := workspace.Say(workspace.ErrNotFound, "No output of this call is kept.")
	name := outputOf(v.Steps, callID)
	key, err := workspace.ParseKey(v.Key)
	if err != nil || name == "" {
		return nil, missing
	}
	var room workspace.RoomID
	if len(v.Inputs) > 0 {
		room = v.Inputs[0].RoomID
	}
	f, err := c.Work.Output(key, workspace.Actor{Person: v.Run.Requester, Role: v.Run.Role}, room, name)
	if errors.Is(err, workspace.ErrNotFound) || errors.Is(err, workspace.ErrDenied) || errors.Is(err, os.ErrNotExist) {
		return nil, missing
	}
	return f, err
}

// MayWatch says whether the caller may see what a command writes while it runs: who may have all of its output.
func (c *Runs) MayWatch(call control.Call) bool { return c.May(call, "run.output") }

// outputOf is the file of a call, relative to the work folder; empty: there is none.
func outputOf(steps []workspace.Step, callID string) string {
	for _, st := range steps {
		if st.Kind != workspace.StepTool || st.CallID != callID || st.Tool != "exec" {
			continue
		}
		for _, part := range st.Body.Content {
			if m := kept().FindStringSubmatch(part.Text); m != nil {
				return m[1]
			}
		}
	}
	return ""
}
