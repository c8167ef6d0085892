import type { Item, Part } from '../api/types'
import type { Permission } from '../api/types.gen'
import { textOf, type StoredEvent, type Transcript } from './transcript'

// Rows are a transcript as it is read: messages, answers, folded steps. Pure, and the same row is the same object for as
// long as nothing in it changes, so that only what changed is drawn again.

export type Call = { id: string; name: string; args: unknown; at?: string; result?: string; files: Part[]; error?: boolean; ended?: string; running?: boolean; since?: number; waits?: boolean }

export type Row =
  | { kind: 'day'; id: string; at: string }
  | { kind: 'user'; id: string; at: string; item: Item; sequence: number; run: string }
  | { kind: 'answer'; id: string; at: string; text: string; files: Part[]; partial: boolean; reason: string; run: string; sequence: number; growing: boolean; foot?: Foot; asked?: number }
  | { kind: 'steps'; id: string; calls: Call[]; run: string; over: boolean }
  | { kind: 'command'; id: string; at: string; command: string; text: string }
  | { kind: 'error'; id: string; at: string; code: string; text: string; run: string; foot?: Foot; asked?: number }
  | { kind: 'end'; id: string; at: string; foot: Foot; run: string; asked?: number }
  | { kind: 'mark'; id: string; at: string; text: string; by?: string } // with by it stands behind a name

// Foot is how a run ended, and where it began.
export type Foot = { run: string; state: string; reason: string; started?: string; ended: string }

// rowsOf are the rows of what is stored. old gives back its rows where they are the same. Where nothing is known of what
// stands before, no day is written above the first: it would go away when that is read.
export function rowsOf(lines: readonly StoredEvent[], old: readonly Row[] = [], whole = true): Row[] {
  const rows: Row[] = []
  const byCall = new Map<string, Call>()
  const begun = new Map<string, string>()
  const asked = new Map<string, number>() // the first message of a run
  let day = whole || !lines[0] ? '' : new Date(lines[0].time).toDateString()
  const to = (row: Row, at: string) => {
    const d = new Date(at).toDateString()
    if (d !== day) { day = d; rows.push({ kind: 'day', id: `day/${d}/${row.id}`, at }) }
    rows.push(row)
  }
  for (const e of lines) {
    const run = e.run_id ?? ''
    switch (e.type) {
      case 'turn.started': begun.set(run, e.time); break
      case 'turn.ended': end(rows, { run, state: e.data.state, reason: e.data.reason ?? '', started: begun.get(run), ended: e.time }, e, asked.get(run), to); break
      case 'error': to({ kind: 'error', id: e.event_id, at: e.time, code: e.data.code, text: e.data.message ?? '', run }, e.time); break
      case 'item.completed': {
        const { item } = e.data
        if (item.type === 'system' && item.reason === 'retried') takeBack(rows)
        else if (item.type === 'system') to({ kind: 'command', id: item.id || e.event_id, at: e.time, command: item.command ?? '', text: textOf(item) }, e.time)
        else if (item.role === 'user') {
          if (run && !asked.has(run)) asked.set(run, e.sequence)
          to({ kind: 'user', id: item.id || e.event_id, at: e.time, item, sequence: e.sequence, run }, e.time)
        } else if (item.type === 'tool_result') {
          results(byCall, item, e.time)
          const files = (item.parts ?? []).filter(p => p.blob || p.ref) // sent to this conversation: a card of its own, not a detail of a step
          if (files.length) to({ kind: 'answer', id: item.id || e.event_id, at: e.time, text: '', files, partial: false, reason: '', run, sequence: e.sequence, growing: false, asked: asked.get(run) }, e.time)
        }
        else said(rows, byCall, e, item, run, asked.get(run), to)
        break
      }
      case 'permission.resolved': answered(rows, byCall, e.data, run, e.time); to({ kind: 'mark', id: e.event_id, at: e.time, ...decided(e.data) }, e.time); break
      case 'permission.requested': { // the question itself stands at the end while it waits
        const call = byCall.get(e.data.call_id)
        if (call) call.waits = true
        break
      }
      case 'turn.paused': to({ kind: 'mark', id: e.event_id, at: e.time, text: 'Paused. What is said now waits until it goes on.' }, e.time); break
      case 'turn.resumed': to({ kind: 'mark', id: e.event_id, at: e.time, text: 'It goes on.' }, e.time); break
      default: {
        const text = marks[e.type as string]
        if (text) to({ kind: 'mark', id: e.event_id, at: e.time, text }, e.time)
      }
    }
  }
  for (const r of rows) if (r.kind === 'steps') r.over = r.calls.every(c => c.result !== undefined)
  return reuse(rows, old)
}

// takeBack takes away what failed and is asked again right behind it: the question would stand there twice.
function takeBack(rows: Row[]) {
  const last = rows.findLast(r => r.kind === 'error' || r.kind === 'end')
  if (!last) return
  const gone = rows.filter(r => !('run' in r && r.run === last.run))
  rows.splice(0, rows.length, ...gone)
}

const marks: Record<string, string> = {
  compacted: 'Older messages were summed up for the model. Here they stay as they were.',
  undone: 'The messages above were taken back: the model no longer sees them.',
}

// decided says what became of a question: behind the name of who decided it, where somebody did.
function decided(d: Permission): { text: string; by?: string } {
  const via = d.via && !['webchat', 'api', 'cli'].includes(d.via) ? ` on ${d.via}` : ''
  const what = d.tool === 'exec' ? 'this command' : d.tool
  switch (d.state) {
    case 'approved': case 'consumed': return { by: d.decided_by ?? '', text: `allowed ${d.grant !== 'session' ? what : `${d.allows || what} in this session`}${via}.` }
    case 'expired': return { text: `Nobody answered in time, so ${what} was not done.` }
    case 'cancelled': return { text: `The question about ${what} is over${d.reason ? `: ${d.reason}` : ''}.` }
    default: return { by: d.decided_by ?? '', text: `denied ${what}${via}${d.reason ? `: ${d.reason}` : '.'}` }
  }
}

type To = (row: Row, at: string) => void

function said(rows: Row[], byCall: Map<string, Call>, e: StoredEvent, item: Item, run: string, asked: number | undefined, to: To) {
  const parts = item.parts ?? []
  const text = textOf(item)
  const files = parts.filter(p => p.blob || p.ref)
  if (text || files.length || item.partial) {
    to({ kind: 'answer', id: item.id, at: e.time, text, files, partial: item.partial ?? false, reason: item.reason ?? '', run, sequence: e.sequence, growing: false, asked }, e.time)
  }
  for (const p of parts) {
    if (p.type !== 'tool_call') continue
    const call: Call = { id: p.call_id ?? '', name: p.name ?? '', args: p.args, at: e.time, files: [] }
    byCall.set(call.id, call)
    const last = rows[rows.length - 1]
    if (last?.kind === 'steps' && last.run === run) last.calls.push(call)
    else to({ kind: 'steps', id: `steps/${call.id}`, calls: [call], run, over: false }, e.time)
  }
}

function results(byCall: Map<string, Call>, item: Item, at: string) {
  for (const p of item.parts ?? []) {
    const call = p.type === 'tool_result' ? byCall.get(p.call_id ?? '') : undefined
    if (call) Object.assign(call, { result: p.text ?? '', error: p.error, ended: at })
  }
  const only = (item.parts ?? []).find(p => p.type === 'tool_result')
  const call = only && byCall.get(only.call_id ?? '')
  if (call) call.files = (item.parts ?? []).filter(p => p.blob || p.ref)
}

// answered begins the clock of a call that a person was asked about, and of those behind it: their wait is none of their time.
function answered(rows: Row[], byCall: Map<string, Call>, d: Permission, run: string, at: string) {
  const call = byCall.get(d.call_id)
  if (!call) return
  call.waits = false
  const calls = rows.findLast(r => r.kind === 'steps' && r.run === run && r.calls.includes(call)) as (Row & { kind: 'steps' }) | undefined
  for (const c of calls?.calls.slice(calls.calls.indexOf(call)) ?? [call]) if (c.result === undefined) c.at = at
}

// end gives the last answer of a run, or the error that it ended with, its foot; a run without either gets a row that says how it ended.
function end(rows: Row[], foot: Foot, e: StoredEvent, asked: number | undefined, to: To) {
  for (let i = rows.length - 1; i >= 0; i--) {
    const r = rows[i] as Row
    if (r.kind === 'answer' && r.run === foot.run) { r.foot = foot; return }
    if (r.kind === 'error' && r.run === foot.run) { Object.assign(r, { foot, asked }); return } // it says why in words
    if (r.kind === 'steps' && r.run === foot.run) {
      for (const c of r.calls) if (c.result === undefined) Object.assign(c, { result: '', error: true, ended: e.time })
      continue
    }
    if (r.kind === 'day' || r.kind === 'command' || r.kind === 'mark') continue
    break
  }
  to({ kind: 'end', id: e.event_id, at: e.time, foot, run: foot.run, asked }, e.time)
}

function reuse(rows: Row[], old: readonly Row[]): Row[] {
  const before = new Map(old.map(r => [r.id, r]))
  return rows.map(r => {
    const o = before.get(r.id)
    return o && same(o, r) ? o : r
  })
}

function same(a: Row, b: Row): boolean {
  if (a.kind !== b.kind) return false
  switch (a.kind) {
    case 'answer': return b.kind === 'answer' && a.text === b.text && a.partial === b.partial && a.sequence === b.sequence && a.foot?.state === b.foot?.state && a.asked === b.asked && !a.growing
    case 'steps': return b.kind === 'steps' && a.over === b.over && a.calls.length === b.calls.length && a.calls.every((c, i) => c.result === b.calls[i]?.result && c.waits === b.calls[i]?.waits && c.at === b.calls[i]?.at && !c.running)
    case 'error': return b.kind === 'error' && a.foot?.state === b.foot?.state
    case 'user': return b.kind === 'user' && a.sequence === b.sequence
    default: return true
  }
}

// growingRows are the rows of what is under way.
export function growingRows(t: Transcript, stored: readonly Row[]): Row[] {
  const rows: Row[] = []
  for (const g of t.grown) {
    if (g.text) rows.push({ kind: 'answer', id: g.id, at: '', text: g.text, files: [], partial: false, reason: '', run: g.run, sequence: Number.MAX_SAFE_INTEGER, growing: true })
  }
  const known = new Set(stored.flatMap(r => (r.kind === 'steps' ? r.calls.map(c => c.id) : [])))
  const fresh = [...t.calls].filter(([id]) => !known.has(id))
  const first = fresh[0]
  if (first) rows.push({ kind: 'steps', id: `steps/${first[0]}`, run: first[1].run, over: false, calls: fresh.map(([id, c]) => ({ id, name: c.name, args: undefined, files: [], running: true, since: c.since })) })
  return rows
}
