package telegramtest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"sync"
)

func getMe(c *call) *apiError {
	c.out = appendUser(c.out, c.s.opts.Bot)
	c.out = c.out[:len(c.out)-1]
	c.out = append(c.out, `,"can_join_groups":true,"can_read_all_group_messages":`...)
	c.out = strconv.AppendBool(c.out, c.s.opts.Bot.ReadsAll)
	c.out = append(c.out, `,"supports_inline_queries":false}`...)
	return nil
}

func getChat(c *call) *apiError {
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.gone != nil && ch.info.Kind != Private {
		return ch.gone
	}
	c.out = appendChat(c.out, ch.info)
	return nil
}

// Command is an entry of the bot's menu.
type Command struct {
	Name string `json:"command"`
	Help string `json:"description"`
}

type commandStore struct {
	mu    sync.Mutex
	lists map[string][]Command // by scope and language
}

var commandName = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)

func (c *call) scope() string { return c.get("scope") + "/" + c.get("language_code") }

func setMyCommands(c *call) *apiError {
	var list []Command
	if err := json.Unmarshal([]byte(c.get("commands")), &list); err != nil {
		return badRequest("can't parse commands JSON object")
	}
	if len(list) > 100 {
		return badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, cmd := range list {
		if !commandName.MatchString(cmd.Name) {
			return badRequest("BOT_COMMAND_INVALID")
		}
		if n := units(cmd.Help); n == 0 || n > 256 {
			return badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	c.s.commands.mu.Lock()
	defer c.s.commands.mu.Unlock()
	if c.s.commands.lists == nil {
		c.s.commands.lists = map[string][]Command{}
	}
	c.s.commands.lists[c.scope()] = list
	return c.yes()
}

func deleteMyCommands(c *call) *apiError {
	c.s.commands.mu.Lock()
	defer c.s.commands.mu.Unlock()
	delete(c.s.commands.lists, c.scope())
	return c.yes()
}

func getMyCommands(c *call) *apiError {
	c.s.commands.mu.Lock()
	defer c.s.commands.mu.Unlock()
	c.out = append(c.out, '[')
	for i, cmd := range c.s.commands.lists[c.scope()] {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendString(append(c.out, `{"command":`...), cmd.Name)
		c.out = appendString(append(c.out, `,"description":`...), cmd.Help)
		c.out = append(c.out, '}')
	}
	c.out = append(c.out, ']')
	return nil
}

// Commands is the menu of the default scope.
func (v View) Commands() []Command {
	v.s.commands.mu.Lock()
	defer v.s.commands.mu.Unlock()
	return v.s.commands.lists["/"]
}

// Answer is what the bot said to a pressed button.
type Answer struct {
	Given bool
	Text  string
	Alert bool
}

type callbackStore struct {
	mu sync.Mutex
	m  map[string]Answer
}

func answerCallbackQuery(c *call) *apiError {
	id, text := c.get("callback_query_id"), c.get("text")
	c.s.callbacks.mu.Lock()
	defer c.s.callbacks.mu.Unlock()
	if _, ok := c.s.callbacks.m[id]; !ok {
		return badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	if units(text) > 200 {
		return badRequest("MESSAGE_TOO_LONG")
	}
	c.s.callbacks.m[id] = Answer{true, text, c.bool("show_alert")}
	return c.yes()
}

// Answered tells how the bot answered a pressed button.
func (v View) Answered(callback string) Answer {
	v.s.callbacks.mu.Lock()
	defer v.s.callbacks.mu.Unlock()
	return v.s.callbacks.m[callback]
}
