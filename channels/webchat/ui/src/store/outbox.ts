import type { Down, FileRef } from '../api/types'
import { call, Problem } from '../api/http'
import type { Run } from '../api/types'
import { newId } from './ids'
import { line } from './line'
import { Saved } from './saved'

// What was written and is not in a transcript yet. It survives a reload, and is the same in every tab: sending the same id
// again is harmless.

export type Sent = {
  id: string
  session: string // a key, or the name of a session that begins with this
  key: string // empty until it is known
  agent: string
  text: string
  files: FileRef[]
  at: number
  state: 'sending' | 'stored' | 'refused' | 'over' // over: stored, and nothing came of it
  input_id?: string
  run_id?: string | null
  problem?: string
}

export const outbox = new Saved<Sent[]>('parley.outbox', [])

const again = 5000 // ms without an answer on an open line
const oldest = 24 * 3600_000 // ms that a stored message is looked for
const tried = new Map<string, number>()

// write puts a message on its way and returns it.
export function write(m: Pick<Sent, 'session' | 'key' | 'agent' | 'text' | 'files'>): Sent {
  const sent: Sent = { ...m, id: newId(), at: Date.now(), state: 'sending' }
  outbox.set([...outbox.get(), sent])
  offer(sent)
  return sent
}

// retry offers a refused message again, as a new one: what was refused under the old id stays refused.
export function retry(id: string) {
  const m = outbox.get().find(x => x.id === id)
  if (!m) return
  drop(id)
  write(m)
}

export function drop(id: string) { outbox.set(outbox.get().filter(m => m.id !== id)) }

function change(id: string, to: Partial<Sent>) { outbox.set(outbox.get().map(m => (m.id === id ? { ...m, ...to } : m))) }

function offer(m: Sent) {
  if (line.send({ type: 'message', id: m.id, agent: m.agent, session: m.key || m.session, text: m.text, files: m.files.map(f => ({ ref: f.ref })), at: m.at })) tried.set(m.id, Date.now())
}

const waiting = () => outbox.get().filter(m => m.state === 'sending')

function take(d: Down) {
  switch (d.type) {
    case 'hello':
      tried.clear()
      waiting().forEach(offer)
      break
    case 'stored':
      change(d.id, { state: 'stored', input_id: d.input_id, run_id: d.run_id, key: d.session })
      break
    case 'refused':
      if (d.problem.status === 429 || (d.problem.status ?? 0) >= 500) break // it is offered again
      change(d.id, { state: 'refused', problem: d.problem.detail || d.problem.title || 'The gateway refused this message.' })
      break
  }
}

// settled drops what a transcript holds by now.
export function settled(done: ReadonlySet<string>) {
  const left = outbox.get().filter(m => !m.input_id || !done.has(m.input_id))
  if (left.length !== outbox.get().length) outbox.set(left)
}

// look asks what became of a stored message that no transcript shows.
export async function look(m: Sent) {
  if (!m.input_id) return
  try {
    const run = await call<Run>(`/v1/runs/${m.input_id}`)
    if (run.run_id && run.state !== 'queued') drop(m.id) // it is in a transcript: of an older generation
    else if (run.state !== 'queued' && run.state !== 'taken') change(m.id, { state: 'over', problem: endings[run.state] ?? run.state })
  } catch (err) {
    if (err instanceof Problem && err.status === 404) drop(m.id)
  }
}

const endings: Record<string, string> = {
  cancelled: 'Stopped before it was answered.',
  dropped: 'Too much was waiting: it was dropped.',
  stale: 'It is parked: /resume has it answered.',
  refused: 'It was refused.',
  stopped: 'Stopped before it was answered.',
  silent: 'Nothing was to be said.',
  answered: 'Answered.',
  failed: 'It failed.',
}

line.listen(take)
setInterval(() => {
  const now = Date.now()
  for (const m of waiting()) if (now - m.at > again && now - (tried.get(m.id) ?? 0) > again) offer(m)
  const left = outbox.get().filter(m => m.state === 'sending' || m.state === 'refused' || now - m.at < oldest)
  if (left.length !== outbox.get().length) outbox.set(left)
}, 2000)
