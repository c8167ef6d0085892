// The nouns of docs/api.md and of the live line, by hand until they are generated.

export type Usage = { inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number; totalCostUsd: number | null; durationMs: number }

export type Part = { type: string; text?: string; name?: string; call_id?: string; args?: unknown; error?: boolean; mime?: string; blob?: string; ref?: string; size?: number }

export type Item = {
  id: string
  type: 'message' | 'tool_call' | 'tool_result' | 'system' | 'status'
  role?: 'user' | 'assistant' | 'tool' | 'system'
  name?: string
  parts?: Part[]
  quoted?: Part[]
  command?: string
  reason?: string
  partial?: boolean
}

export type Event = {
  event_id: string
  sequence: number
  time: string
  session_id: string
  run_id: string | null
  source: 'agent' | 'daemon'
  synthetic: boolean
} & (
  | { type: 'session.started' | 'session.ended'; data: { key: string; generation: number } }
  | { type: 'turn.started'; data: Record<string, never> }
  | { type: 'item.started' | 'item.completed'; data: { item: Item } }
  | { type: 'item.delta'; data: { item_id: string; part: number; offset: number; text: string } }
  | { type: 'error'; data: { code: string; message?: string } }
  | { type: 'turn.ended'; data: { state: string; reason?: string } }
)

export type Session = {
  key: string
  session_id: string
  generation: number
  generations?: number
  agent: string
  name?: string
  local?: boolean
  channel?: string
  network?: string
  kind?: string
  peer?: string
  person?: string
  sequence?: number
  preview?: string
  updated: string
  running?: boolean
  waiting?: number
  usage?: Usage
}

export type Generation = { session_id: string; generation: number; created: string; ended?: string; sequence: number; preview?: string; usage?: Usage; forked_from?: string; forked_before?: number }

export type Agent = { id: string; name: string; models: string[]; default: boolean }
export type Person = { id: string; role: string; name?: string }
export type Me = { person: Person; version: string; boot: number; agents: Agent[] }
export type Command = { name: string; args?: string; help: string; example?: string }
export type FileRef = { ref: string; name: string; mime: string; size: number }
export type Stored = { input_id: string; run_id: string | null; session: string }

export type Run = {
  id: string
  run_id?: string
  input_id?: string
  session: string
  state: string
  reason?: string
  text: string
  model?: string
  requester?: string
  started?: string
  ended?: string
  tries?: number
  inputs: string[]
  usage: Usage
}

export type ChannelView = { name: string; type: string; account?: string; state: string; since: string; cause?: string; hint?: string }
export type Pairing = { id: string; short: string; channel: string; type: string; user: string; name?: string; state: string; requested: string; decided?: string; decided_by?: string; person?: string; role?: string }

export type List<T> = { items: T[]; next?: string }
export type ProblemBody = { type?: string; title?: string; status?: number; detail?: string }

// What comes over the live line, and what goes.
export type Down =
  | { type: 'hello'; boot: number; version: string; person: Person }
  | { type: 'event'; key: string; event: Event }
  | { type: 'caught_up'; key: string; session_id: string; sequence: number }
  | { type: 'session'; item: Session }
  | { type: 'needs'; pairings: number; approvals: number }
  | ({ type: 'stored'; id: string } & Stored)
  | { type: 'refused'; id: string; problem: ProblemBody }
  | { type: 'sessions' } // more changed than is told: read the list
  | { type: 'unfollowed'; key: string; problem: ProblemBody }
  | Post
  | { type: 'typing'; session: string }
  | { type: 'closing'; message?: string }
  | { type: 'slow' }

// Post is what the gateway says to a conversation beside its transcript. The page answers with got.
export type Post = { type: 'post'; id: string; session: string; text: string; actions?: { Label: string; Value: string }[][] | null; reply_to?: string; removed?: boolean }

export type Up =
  | { type: 'follow'; key: string; session_id: string; after: number }
  | { type: 'unfollow'; key: string }
  | { type: 'message'; id: string; agent: string; session: string; text: string; files: { ref: string }[]; at: number }
  | { type: 'press'; id: string; session: string; target: string; text: string }
  | { type: 'got'; id: string; problem?: string }
