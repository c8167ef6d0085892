import type { Session } from '../api/types'
import { call, Problem, segment } from '../api/http'
import { Atom } from './atom'
import { line } from './line'

// How far the person has read is kept by the gateway, for all pages and devices. What this page has just seen is told to it at
// most every two seconds for each session, and counts here at once.
const every = 2000 // ms

type Mark = { session: string; sequence: number }
type State = { seen: Mark; told?: Mark; at: number; timer?: ReturnType<typeof setTimeout> }

const marks = new Map<string, State>() // by session key

// reads changes whenever something was read here.
export const reads = new Atom(0)

const covers = (a: Mark | undefined, b: Mark): boolean => a !== undefined && a.session === b.session && a.sequence >= b.sequence

export function isUnread(s: Session): boolean {
  return s.unread && !covers(marks.get(s.key)?.seen, { session: s.session_id, sequence: s.sequence })
}

// see says that somebody has seen all up to an event.
export function see(key: string, session: string, sequence: number) {
  const seen = { session, sequence }
  const was = marks.get(key)
  if (covers(was?.seen, seen)) return
  const state = { at: 0, ...was, seen }
  marks.set(key, state)
  reads.update(n => n + 1)
  state.timer ??= setTimeout(() => { state.timer = undefined; tell(key) }, Math.max(0, state.at + every - Date.now()))
}

function tell(key: string, last = false) {
  const state = marks.get(key)
  if (!state || covers(state.told, state.seen)) return
  const { seen } = state
  state.at = Date.now()
  state.told = seen
  call(`/v1/sessions/${segment(key)}/read`, { method: 'PUT', body: { session_id: seen.session, sequence: seen.sequence }, keepalive: last }).catch((err: unknown) => {
    if (err instanceof Problem && err.status < 500 && err.status !== 429) return
    if (state.told === seen) state.told = undefined // told again when the line is back, or more is seen
  })
}

// leave tells at once what was seen of a session that is not looked at any more.
export function leave(key: string) {
  const state = marks.get(key)
  if (!state) return
  clearTimeout(state.timer)
  state.timer = undefined
  tell(key)
}

const all = (last: boolean) => { for (const key of marks.keys()) tell(key, last) }
line.listen(d => { if (d.type === 'hello') all(false) })
window.addEventListener('pagehide', () => { all(true) })
