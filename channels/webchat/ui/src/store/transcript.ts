import type { Event, Item } from '../api/types'
import type { Trouble } from '../api/types.gen'

// A transcript is what this page knows of one generation of a session: stored events by sequence, and what grows beside
// them. It is changed by apply alone, with events as the gateway sends them, in any order and as often as they come:
// stored events win over what grew, and what is said live of a finished item or run comes late and is passed over.

export type StoredEvent = Event & { synthetic: false }

export type Growing = { id: string; run: string; text: string; pieces: [offset: number, text: string][] }

// Status is why nothing is to be seen; failing: a model fails, and this is the failure. Its next try is due by this page's clock.
export type Status = { run: string; text: string; since: number; failing?: Trouble; due?: number }

// Written is the end of what a command has written, and how many lines it ended in all.
export type Written = { text: string; lines: number; run: string }

// Asked is a model that is asked since then, by this page's clock, and has sent nothing yet.
export type Asked = { run: string; who: string; since: number }

export type Transcript = {
  readonly sessionId: string // the generation; empty: not known yet
  readonly generation: number
  readonly lines: readonly StoredEvent[] // ordered by sequence; a hole is filled by what is under way
  readonly grown: readonly Growing[] // answers that grow, in the order in which they began
  readonly calls: ReadonlyMap<string, { name: string; run: string; since: number }> // tools that run now
  readonly output: ReadonlyMap<string, Written> // the end of what commands that run now have written, by call
  readonly status: Status | undefined
  readonly asked: Asked | undefined
  readonly run: string | undefined // the run that is under way
  readonly live: string | undefined // a run that was heard of and has nothing stored yet
  readonly done: ReadonlySet<string> // items and calls that are stored
  readonly ended: ReadonlySet<string> // runs
}

export const nothing: Transcript = { sessionId: '', generation: 0, lines: [], grown: [], calls: new Map(), output: new Map(), status: undefined, asked: undefined, run: undefined, live: undefined, done: new Set(), ended: new Set() }

// through is the sequence up to which nothing is missing, counted from the first line that is here: what to come back with.
export function through(t: Transcript): number {
  const first = t.lines[0]
  if (!first) return 0
  const last = t.lines[t.lines.length - 1] as StoredEvent
  if (last.sequence - first.sequence === t.lines.length - 1) return last.sequence
  let n = first.sequence
  for (const l of t.lines) {
    if (l.sequence > n + 1) break
    n = l.sequence
  }
  return n
}

type Draft = { -readonly [K in keyof Transcript]: Transcript[K] } & { lines: StoredEvent[]; grown: Growing[]; calls: Map<string, { name: string; run: string; since: number }>; output: Map<string, Written>; done: Set<string>; ended: Set<string> }

// apply returns the transcript with the events in it, or the same one when they change nothing.
export function apply(t: Transcript, events: readonly Event[], now: number = Date.now()): Transcript {
  let d: Draft | undefined
  for (const e of events) {
    const at = d ?? t
    if (!changes(at, e)) continue
    d ??= { ...t, lines: [...t.lines], grown: [...t.grown], calls: new Map(t.calls), output: new Map(t.output), done: new Set(t.done), ended: new Set(t.ended) }
    step(d, e, now)
  }
  if (!d) return t
  d.run = running(d)
  if (!d.run) {
    d.status = undefined
    d.asked = undefined
    d.live = undefined
  }
  return d
}

// changes tells quickly what came twice or late.
function changes(t: Transcript, e: Event): boolean {
  if (e.type === 'session.started') return e.data.generation > t.generation
  if (e.type === 'session.ended') return false
  if (t.sessionId && e.session_id !== t.sessionId && e.session_id !== '') return false // of another generation
  if (!e.synthetic) return !has(t.lines, e.sequence)
  if (e.run_id !== null && t.ended.has(e.run_id)) return false
  switch (e.type) {
    case 'item.delta': case 'item.output': return !t.done.has(e.data.item_id)
    case 'item.started': return !t.done.has(e.data.item.id)
    case 'item.completed': return e.data.item.type === 'status'
    case 'model.asked': return true
    default: return false
  }
}

function step(d: Draft, e: Event, now: number) {
  if (e.type === 'session.started') {
    if (e.session_id === d.sessionId) d.generation = e.data.generation
    else Object.assign(d, { ...nothing, sessionId: e.session_id, generation: e.data.generation, lines: [], grown: [], calls: new Map(), output: new Map(), done: new Set(), ended: new Set() })
    return
  }
  if (!d.sessionId) d.sessionId = e.session_id
  if (!e.synthetic) {
    insert(d.lines, e as StoredEvent)
    settle(d, e)
    return
  }
  const run = e.run_id ?? ''
  if (run) d.live = run
  switch (e.type) {
    case 'item.started':
      if (e.data.item.type === 'tool_call') d.calls.set(e.data.item.id, { name: e.data.item.name ?? '', run, since: now })
      else begin(d, e.data.item.id, run)
      goesOn(d, run)
      break
    case 'item.delta': {
      const i = begin(d, e.data.item_id, run)
      d.grown[i] = grow(d.grown[i] as Growing, e.data.offset, e.data.text)
      if (e.data.text) goesOn(d, run)
      break
    }
    case 'item.output':
      d.output.set(e.data.item_id, { text: e.data.text, lines: e.data.lines, run })
      goesOn(d, run)
      break
    case 'item.completed': {
      const text = textOf(e.data.item), failing = e.data.item.trouble
      const before = d.status?.run === run ? d.status : undefined
      d.asked = undefined
      if (before?.text === text && !failing) break
      const due = failing?.next_try ? now + Date.parse(failing.next_try) - Date.parse(e.time) : undefined
      d.status = { run, text, since: failing && before?.failing ? before.since : now, ...(failing && { failing, due }) }
      break
    }
    case 'model.asked': // what it failed with before still stands
      d.asked = { run, who: e.data.provider, since: now + Date.parse(e.data.time) - Date.parse(e.time) }
      break
  }
}

// goesOn forgets what a run has waited for.
function goesOn(d: Draft, run: string) {
  if (d.status?.run === run) d.status = undefined
  if (d.asked?.run === run) d.asked = undefined
}

// settle takes away what was growing when its end is stored.
function settle(d: Draft, e: Event) {
  const run = e.run_id ?? ''
  if (e.type === 'item.completed') {
    const { item } = e.data
    if (item.id) d.done.add(item.id)
    d.grown = d.grown.filter(g => g.id !== item.id)
    for (const p of item.parts ?? []) if (p.type === 'tool_result' && p.call_id) {
      d.done.add(p.call_id)
      d.calls.delete(p.call_id)
      d.output.delete(p.call_id)
    }
    if (item.role !== 'user') goesOn(d, run)
  }
  if (e.type === 'turn.ended') {
    d.ended.add(run)
    d.grown = d.grown.filter(g => g.run !== run)
    for (const [id, c] of d.calls) if (c.run === run) d.calls.delete(id)
    for (const [id, o] of d.output) if (o.run === run) d.output.delete(id)
    goesOn(d, run)
    if (d.live === run) d.live = undefined
  }
}

// running is the last run that something is stored of, unless it has ended; or the one that was heard of.
function running(d: Transcript): string | undefined {
  if (d.live && !d.ended.has(d.live)) return d.live
  for (let i = d.lines.length - 1; i >= 0; i--) {
    const run = d.lines[i]?.run_id
    if (run) return d.ended.has(run) ? undefined : run
  }
  return undefined
}

function has(lines: readonly StoredEvent[], n: number): boolean {
  const i = place(lines, n)
  return lines[i]?.sequence === n
}

// place is where a sequence is, or would stand.
export function place(lines: readonly StoredEvent[], n: number): number {
  const last = lines[lines.length - 1]
  if (!last || last.sequence < n) return lines.length
  let low = 0, high = lines.length
  while (low < high) {
    const mid = (low + high) >> 1
    if ((lines[mid] as StoredEvent).sequence < n) low = mid + 1
    else high = mid
  }
  return low
}

function insert(lines: StoredEvent[], e: StoredEvent) {
  const i = place(lines, e.sequence)
  if (i === lines.length) lines.push(e)
  else lines.splice(i, 0, e)
}

function begin(d: Draft, id: string, run: string): number {
  const i = d.grown.findIndex(g => g.id === id)
  if (i >= 0) return i
  d.grown.push({ id, run, text: '', pieces: [] })
  return d.grown.length - 1
}

// grow puts a piece over the text from its offset on, in UTF-16 units. A piece that is there already changes nothing; one
// that begins beyond the end waits for what is between; an empty one at 0 starts over.
function grow(g: Growing, offset: number, text: string): Growing {
  if (offset === 0 && text === '') return { ...g, text: '', pieces: [] }
  if (offset > g.text.length) return { ...g, pieces: [...g.pieces, [offset, text]] }
  if (g.text.startsWith(text, offset)) return g
  let all = g.text.slice(0, offset) + text
  const waiting = g.pieces.filter(([o, p]) => o + p.length > all.length)
  let moved = true
  while (moved) {
    moved = false
    for (const [o, p] of waiting) if (o <= all.length && o + p.length > all.length) {
      all = all.slice(0, o) + p
      moved = true
    }
  }
  return { ...g, text: all, pieces: waiting.filter(([o, p]) => o + p.length > all.length) }
}

export function textOf(item: Item): string {
  return (item.parts ?? []).filter(p => p.type === 'text').map(p => p.text ?? '').join('\n\n')
}
