package tools

import "slices"

// Groups of tools that built-in rules and profiles know. A pattern names one as group:NAME.
const (
	GroupFiles   = "files"   // read_file write_file edit_file remove_file list_dir resolve_path
	GroupExec    = "exec"    // exec
	GroupSend    = "send"    // send_file
	GroupMemory  = "memory"  // remember recall
	GroupHelpers = "helpers" // sessions_spawn subagents agents_list
	GroupTasks   = "tasks"   // tasks runs
	GroupSession = "session" // sessions_list sessions_history sessions_send
	GroupWeb     = "web"     // web_fetch web_search
	GroupMCP     = "mcp"     // tools of MCP servers
)

// Groups names them all.
func Groups() []string {
	return []string{GroupFiles, GroupExec, GroupSend, GroupMemory, GroupHelpers, GroupTasks, GroupSession, GroupWeb, GroupMCP}
}

// Profiles names the ready-made lists, the narrowest first.
func Profiles() []string { return []string{"minimal", "messaging", "coding", "full"} }

// profile is what a ready-made list allows. full and the empty name do not narrow; a name that is not known allows
// nothing.
func profile(name string) Rules {
	minimal := []string{"read_file", "list_dir", "resolve_path", "recall"}
	switch name {
	case "", "full":
		return Rules{}
	case "minimal":
		return Rules{Allow: minimal}
	case "messaging":
		return Rules{Allow: slices.Concat(minimal, []string{"group:send", "group:memory", "group:session", "group:tasks"})}
	case "coding":
		return Rules{Allow: []string{"group:files", "group:exec", "group:send", "group:memory", "group:helpers", "group:web"}}
	}
	return Rules{Allow: []string{}}
}
