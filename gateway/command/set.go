package command

import (
	"context"
	"strconv"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/conversation"
)

// first is the first argument, or nothing.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// whenSet is the order of a setting: shown at once, changed in its place.
func whenSet(args []string) Order {
	if len(args) == 0 || args[0] == "list" || args[0] == "status" {
		return Concurrent
	}
	return InOrder
}

func beforeRoutingWhenSet(args []string) Order {
	if len(args) == 0 {
		return Concurrent
	}
	return BeforeRouting
}

// showOr is the right of a setting: looking at it needs no more than /status does.
func showOr(name string) func([]string) string {
	return func(args []string) string {
		if args != nil && len(args) == 0 {
			return "status"
		}
		return name
	}
}

func modelVerb(args []string) string {
	if args != nil && (len(args) == 0 || args[0] == "list" || args[0] == "status") {
		return "models"
	}
	return "model"
}

func model(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	what := first(args)
	switch strings.ToLower(what) {
	case "", "list":
		_, err := c.Conversations.Models(ctx, call, false)
		return err
	case "status":
		_, err := c.Conversations.Models(ctx, call, true)
		return err
	case "default":
		what = "default"
	}
	_, err := c.Conversations.Model(ctx, call, what)
	return err
}

func think(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	_, err := c.Conversations.Think(ctx, call, first(args))
	return err
}

// set is a setting that is one word.
func set(name string) func(context.Context, *all.Nouns, control.Call, []string) error {
	return func(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
		_, err := c.Conversations.Setting(ctx, call, name, first(args))
		return err
	}
}

func activation(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	_, err := c.Conversations.Activation(ctx, call, first(args))
	return err
}

func queue(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	change, err := queueChange(args)
	if err == nil {
		_, err = c.Conversations.Queue(ctx, call, change)
	}
	return err
}

// queueChange reads a mode and options in any order.
func queueChange(args []string) (q conversation.QueueChange, err error) {
	for _, arg := range args {
		name, value, option := strings.Cut(strings.ToLower(arg), ":")
		switch {
		case option && value != "" && name == "debounce" && q.Debounce == "":
			q.Debounce = value
		case option && name == "cap" && q.Cap == 0:
			if q.Cap, err = strconv.Atoi(value); err != nil || q.Cap < 1 {
				return q, row("queue").wrong(arg)
			}
		case option && value != "" && name == "drop" && q.Drop == "":
			q.Drop = value
		case !option && name != "" && q.Mode == "":
			q.Mode = name
			if name == "reset" {
				q.Mode = "default"
			}
		default:
			return q, row("queue").wrong(arg)
		}
	}
	return q, nil
}

func checkQueue(args []string) error {
	change, err := queueChange(args)
	if err == nil {
		err = change.Check()
	}
	return err
}

func compact(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	_, err := c.Conversations.Compact(ctx, call, first(args))
	return err
}

func retry(ctx context.Context, c *all.Nouns, call control.Call, _ []string) error {
	_, err := c.Conversations.Retry(ctx, call)
	return err
}

func undo(ctx context.Context, c *all.Nouns, call control.Call, _ []string) error {
	_, err := c.Conversations.Undo(ctx, call)
	return err
}

func composition(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	_, err := c.Conversations.Context(ctx, call, first(args))
	return err
}
