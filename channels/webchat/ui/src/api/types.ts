// The nouns of the API are generated from the gateway's OpenAPI (types.gen.ts), so that a drift fails the build. Here they
// are narrowed to what the page tells apart, and the frames of the live line (docs/api.md) are added.
import type * as gen from './types.gen'

export type { Agent, Applied, Approval, Channel, ChannelField, ChannelKind, Checked, ConfigProblem, ConfigText, Generation, Me, ModelTry, Pairing, Person, Provider, Run, Session, Usage } from './types.gen'

export interface Part extends gen.Part {
  ref?: string
  size?: number
}

export interface Item extends gen.Item {
  type: 'message' | 'tool_call' | 'tool_result' | 'system' | 'status'
  role?: 'user' | 'assistant' | 'tool' | 'system'
  parts?: Part[]
}

export type Event = Omit<gen.Event, 'type' | 'data'> & (
  | { type: 'session.started' | 'session.ended'; data: gen.SessionData }
  | { type: 'turn.started'; data: Record<string, never> }
  | { type: 'item.started' | 'item.completed'; data: { item: Item } }
  | { type: 'item.delta'; data: gen.Delta }
  | { type: 'item.output'; data: gen.Output }
  | { type: 'error'; data: gen.ErrorData }
  | { type: 'turn.ended'; data: gen.EndData }
  | { type: 'permission.requested' | 'permission.resolved'; data: gen.Permission }
  | { type: 'turn.paused' | 'turn.resumed'; data: gen.Hold }
  | { type: 'model.asked'; data: gen.Asked }
)

export type Command = { name: string; args?: string; help: string; example?: string }
export type FileRef = { ref: string; name: string; mime: string; size: number }
export type List<T> = { items: T[]; next?: string | null }
export type ProblemBody = Partial<Omit<gen.Problem, 'problems'>> & { problems?: gen.ConfigProblem[] }

// What comes over the live line, and what goes.
export type Down =
  | { type: 'hello'; boot: number; version: string; person: gen.Person }
  | { type: 'event'; key: string; event: Event }
  | { type: 'caught_up'; key: string; session_id: string; sequence: number }
  | { type: 'session'; item: gen.Session }
  | { type: 'sessions' } // more changed than is told: read the list
  | { type: 'needs'; pairings: number; approvals: number; failing: number }
  | ({ type: 'stored'; id: string } & gen.Accepted)
  | { type: 'refused'; id: string; problem: ProblemBody }
  | { type: 'unfollowed'; key: string; problem: ProblemBody }
  | Post
  | { type: 'typing'; session: string }
  | { type: 'closing'; message?: string }
  | { type: 'slow' }

// Post is what the gateway says to a conversation beside its transcript. The page answers with got.
export type Post = { type: 'post'; id: string; session: string; text: string; actions?: { Label: string; Value: string }[][] | null; files?: { ref: string; name?: string; mime?: string; size?: number }[]; reply_to?: string; removed?: boolean }

export type Up =
  | { type: 'follow'; key: string; session_id: string; after: number }
  | { type: 'unfollow'; key: string }
  | { type: 'message'; id: string; agent: string; session: string; text: string; files: { ref: string }[]; at: number }
  | { type: 'press'; id: string; session: string; target: string; text: string }
  | { type: 'got'; id: string; problem?: string }
