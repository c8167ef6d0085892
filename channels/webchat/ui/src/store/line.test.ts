import { beforeEach, expect, test, vi } from 'vitest'
import type { Down, Event, Up } from '../api/types'

// A gateway behind a socket that can be cut: what the page says to it, and what it says.
class Socket {
  static all: Socket[] = []
  static OPEN = 1
  readyState = 0
  sent: Up[] = []
  onmessage: ((m: { data: string }) => void) | null = null
  onclose: (() => void) | null = null
  constructor() { Socket.all.push(this) }
  send(text: string) { this.sent.push(JSON.parse(text) as Up) }
  close() { this.cut() }
  open() { this.readyState = 1; this.say({ type: 'hello', boot: 1, version: 'v1', person: { id: 'p', role: 'owner', name: 'p' } }) }
  cut() { this.readyState = 3; this.onclose?.() }
  say(d: Down) { this.onmessage?.({ data: JSON.stringify(d) }) }
  said<T extends Up['type']>(type: T) { return this.sent.filter(u => u.type === type) as Extract<Up, { type: T }>[] }
}

const last = () => Socket.all[Socket.all.length - 1] as Socket
const stored = (n: number, item: object, run = 'r1'): Event => ({ event_id: `s/${n}`, sequence: n, time: '2026-01-01T00:00:00Z', session_id: 's', run_id: run, source: 'agent', synthetic: false, type: 'item.completed', data: { item } }) as Event
const delta = (offset: number, text: string): Event => ({ event_id: 'd', sequence: 3, time: '2026-01-01T00:00:00Z', session_id: 's', run_id: 'r1', source: 'agent', synthetic: true, type: 'item.delta', data: { item_id: 'r1:1', part: 0, offset, text } })

beforeEach(() => {
  vi.resetModules()
  vi.useFakeTimers()
  localStorage.clear()
  Socket.all = []
  vi.stubGlobal('WebSocket', Socket)
  vi.stubGlobal('requestAnimationFrame', (f: () => void) => setTimeout(f, 16))
  vi.stubGlobal('fetch', vi.fn((path: string) => Promise.resolve(path.includes('/entries') || path.includes('/sessions')
    ? new Response(JSON.stringify({ items: path.includes('/entries') ? [stored(1, { id: 'i0', type: 'message', role: 'user', parts: [] })] : [] }))
    : new Response(JSON.stringify({ person: { id: 'p', role: 'owner', name: 'p' }, version: 'v1', boot: 1, agents: [] })))))
})

async function page() {
  const app = await import('./app')
  const box = await import('./outbox')
  const { conversation } = await import('./conversation')
  await import('./line')
  await app.who()
  return { ...app, ...box, conversation }
}

test('a cut line is followed again from where it was, and nothing is lost or said twice', async () => {
  const p = await page()
  last().open()
  const c = p.conversation('k')
  c.open()
  await vi.advanceTimersByTimeAsync(50)
  expect(last().said('follow')).toEqual([{ type: 'follow', key: 'k', session_id: 's', after: 1 }])
  last().say({ type: 'event', key: 'k', event: stored(2, { id: 'i1', type: 'message', role: 'user', parts: [] }) })
  last().say({ type: 'event', key: 'k', event: delta(0, 'Hel') })
  await vi.advanceTimersByTimeAsync(50)
  expect(c.view.get().t.grown[0]?.text).toBe('Hel')
  const cut = last()
  cut.cut()
  await vi.advanceTimersByTimeAsync(2000)
  expect(last()).not.toBe(cut)
  last().open()
  await vi.advanceTimersByTimeAsync(50)
  expect(last().said('follow')).toEqual([{ type: 'follow', key: 'k', session_id: 's', after: 2 }])
  last().say({ type: 'event', key: 'k', event: stored(2, { id: 'i1', type: 'message', role: 'user', parts: [] }) })
  last().say({ type: 'event', key: 'k', event: delta(0, 'Hello wor') })
  last().say({ type: 'event', key: 'k', event: stored(3, { id: 'r1:1', type: 'message', role: 'assistant', parts: [{ type: 'text', text: 'Hello world' }] }) })
  await vi.advanceTimersByTimeAsync(50)
  const { t } = c.view.get()
  expect([t.lines.map(l => l.sequence), t.grown]).toEqual([[1, 2, 3], []])
})

test('a message goes with the same id until it is stored, over a cut line and a reload', async () => {
  let p = await page()
  const m = p.write({ session: 'k', key: 'k', agent: '', text: 'hello', files: [] })
  expect(last().said('message')).toEqual([]) // not open yet
  last().open()
  expect(last().said('message').map(u => u.id)).toEqual([m.id])
  last().cut()
  await vi.advanceTimersByTimeAsync(2000)
  last().open()
  expect(last().said('message').map(u => u.id)).toEqual([m.id])
  vi.resetModules() // the page is loaded again
  p = await page()
  last().open()
  expect(last().said('message').map(u => u.id)).toEqual([m.id])
  last().say({ type: 'stored', id: m.id, input_id: 'i1', run_id: null, session: 'k' })
  expect(p.outbox.get()[0]).toMatchObject({ state: 'stored', input_id: 'i1' })
  last().cut()
  await vi.advanceTimersByTimeAsync(2000)
  last().open()
  expect(last().said('message')).toEqual([])
  p.settled(new Set(['i1']))
  expect(p.outbox.get()).toEqual([])
})

test('what is refused for now is offered again, what is refused for good is said', async () => {
  const p = await page()
  last().open()
  const m = p.write({ session: 'k', key: 'k', agent: '', text: 'hello', files: [] })
  last().say({ type: 'refused', id: m.id, problem: { status: 503, detail: 'busy' } })
  expect(p.outbox.get()[0]?.state).toBe('sending')
  await vi.advanceTimersByTimeAsync(12_000)
  expect(last().said('message').length).toBeGreaterThan(1)
  last().say({ type: 'refused', id: m.id, problem: { status: 403, detail: 'You may not write there.' } })
  expect(p.outbox.get()[0]).toMatchObject({ state: 'refused', problem: 'You may not write there.' })
})

test('a code leaves the address at once', async () => {
  const { followInvitations, invitation } = await import('./app')
  history.replaceState(null, '', '/#code=ABC123')
  followInvitations()
  expect([invitation.get(), location.hash]).toEqual(['ABC123', ''])
})
