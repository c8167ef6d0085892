import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Event, Item } from '../api/types'
import { rowsOf } from './rows'
import { apply, nothing, through, type Transcript } from './transcript'

const base = (sequence: number, run: string | null, session = 's1') => ({ event_id: `${session}/${sequence}`, sequence, time: new Date(1_700_000_000_000 + sequence * 1000).toISOString(), session_id: session, run_id: run, source: 'agent' as const })
const stored = (n: number, run: string | null, item: Item): Event => ({ ...base(n, run), synthetic: false, type: 'item.completed', data: { item } })
const text = (t: string) => [{ type: 'text', text: t }]
const started = (n: number, run: string): Event => ({ ...base(n, run), synthetic: false, type: 'turn.started', data: {} })
const ended = (n: number, run: string, state = 'completed'): Event => ({ ...base(n, run), synthetic: false, type: 'turn.ended', data: { state } })
const delta = (n: number, run: string, id: string, offset: number, t: string): Event => ({ ...base(n, run), event_id: `${id}.${offset}`, synthetic: true, type: 'item.delta', data: { item_id: id, part: 0, offset, text: t } })
const begin = (n: number, run: string, item: Item): Event => ({ ...base(n, run), event_id: `${item.id}.start`, synthetic: true, type: 'item.started', data: { item } })
const status = (n: number, run: string, t: string): Event => ({ ...base(n, run), synthetic: true, type: 'item.completed', data: { item: { id: 'w', type: 'status', parts: text(t) } } })

// turn is a whole run as the gateway tells it: one tool call, then an answer that grows in the pieces.
function turn(from: number, run: string, pieces: string[]): Event[] {
  const whole = pieces.join('')
  let at = 0
  const grown = pieces.map(p => { const d = delta(from + 4, run, `${run}:2`, at, p); at += p.length; return d })
  return [
    started(from, run),
    stored(from + 1, run, { id: `in-${run}`, type: 'message', role: 'user', parts: text('question') }),
    status(from + 2, run, 'thinking'),
    stored(from + 2, run, { id: `${run}:1`, type: 'tool_call', role: 'assistant', parts: [{ type: 'tool_call', name: 'read', call_id: `c-${run}`, args: { path: 'a' } }] }),
    begin(from + 3, run, { id: `c-${run}`, type: 'tool_call', name: 'read' }),
    stored(from + 3, run, { id: `s1/${from + 3}`, type: 'tool_result', role: 'tool', parts: [{ type: 'tool_result', call_id: `c-${run}`, text: 'result' }] }),
    begin(from + 4, run, { id: `${run}:2`, type: 'message', role: 'assistant' }),
    ...grown,
    stored(from + 4, run, { id: `${run}:2`, type: 'message', role: 'assistant', parts: text(whole) }),
    ended(from + 5, run),
  ]
}

const fresh = (t: Transcript) => ({ ...t, grown: t.grown.map(g => ({ ...g })), calls: [...t.calls], done: [...t.done].sort(), ended: [...t.ended].sort() })
const all = (events: Event[]) => events.reduce((t, e) => apply(t, [e], 0), nothing)

const pieces = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 8 })

describe('a file that the agent sends', () => {
  test('is a card of its own before the answer', () => {
    const sent = stored(4, 'r1', { id: 's1/4', type: 'tool_result', role: 'tool', parts: [{ type: 'tool_result', call_id: 'c-r1', text: 'on its way' }, { type: 'file_ref', name: 'a.csv', mime: 'text/csv', blob: 'b1' }] })
    const rows = rowsOf(apply(nothing, turn(1, 'r1', ['done']).map(e => e.sequence === 4 && e.type === 'item.completed' && !e.synthetic ? sent : e), 0).lines)
    const kinds = rows.filter(r => r.kind !== 'day').map(r => r.kind)
    expect(kinds).toEqual(['user', 'steps', 'answer', 'answer'])
    const card = rows.find(r => r.kind === 'answer')
    expect(card?.kind === 'answer' && [card.text, card.files.map(f => f.name)]).toEqual(['', ['a.csv']])
  })
})

describe('a call that a person is asked about', () => {
  test('waits, and its clock begins with the answer', () => {
    const about = (n: number, type: 'permission.requested' | 'permission.resolved', state: string): Event => ({ ...base(n, 'r1'), synthetic: false, type, data: { id: 'a', short: 'a', call_id: 'c-r1', tool: 'read', state } })
    const [begun, question, , call] = turn(1, 'r1', ['x']) as [Event, Event, Event, Event]
    const lines = [begun, question, call, about(4, 'permission.requested', 'pending')]
    const callOf = (events: Event[]) => rowsOf(apply(nothing, events, 0).lines).flatMap(r => (r.kind === 'steps' ? r.calls : []))[0]
    expect(callOf(lines)?.waits).toBe(true)
    const yes = about(60, 'permission.resolved', 'approved')
    const after = callOf([...lines, ...[5, 6].map(n => ({ ...yes, ...base(n, 'r1') }) as Event)])
    expect([after?.waits, after?.at]).toEqual([false, base(6, 'r1').time])
  })
})

describe('the reducer', () => {
  test('any order and any number of copies of whole turns ends in the same state', () => {
    fc.assert(fc.property(pieces, pieces, fc.infiniteStream(fc.nat()), fc.array(fc.nat(), { maxLength: 30 }), fc.nat(5), (a, b, order, twice, cut) => {
      const told = [...turn(1, 'r1', a), ...turn(7, 'r2', b)]
      const want = apply(nothing, told, 0)
      const shuffled = [...told, ...twice.map(i => told[i % told.length] as Event)]
        .map(e => ({ e, at: order.next().value as number })).sort((x, y) => x.at - y.at).map(x => x.e)
      const parts = [shuffled.slice(0, cut), shuffled.slice(cut)]
      const got = parts.reduce((t, p) => apply(t, p, 0), nothing)
      expect(fresh(got)).toEqual(fresh(want))
      expect(through(got)).toBe(12)
      expect(got.run).toBeUndefined()
      expect(rowsOf(got.lines)).toEqual(rowsOf(want.lines))
    }), { numRuns: 300 })
  })

  test('an answer grows to the same text however often its pieces come', () => {
    fc.assert(fc.property(pieces, fc.array(fc.nat(), { maxLength: 20 }), (p, again) => {
      const whole = p.join('')
      const grown = turn(1, 'r1', p).filter(e => e.type === 'item.delta')
      let t = all([started(1, 'r1'), ...grown])
      for (const i of again) t = apply(t, [grown[i % grown.length] as Event], 0)
      expect(t.grown[0]?.text).toBe(whole)
    }))
  })

  test('a piece that comes too early waits for what is between', () => {
    const t = all([started(1, 'r1'), delta(3, 'r1', 'r1:1', 4, 'two '), delta(3, 'r1', 'r1:1', 8, 'three'), delta(3, 'r1', 'r1:1', 0, 'one ')])
    expect(t.grown[0]?.text).toBe('one two three')
  })

  test('an answer that is thrown away starts over', () => {
    const t = all([started(1, 'r1'), delta(3, 'r1', 'r1:1', 0, 'wrong'), delta(3, 'r1', 'r1:1', 0, ''), delta(3, 'r1', 'r1:1', 0, 'right')])
    expect(t.grown[0]?.text).toBe('right')
  })

  test('a snapshot after a reconnect goes over what was there', () => {
    const t = all([started(1, 'r1'), delta(3, 'r1', 'r1:1', 0, 'Hel'), delta(3, 'r1', 'r1:1', 0, 'Hello wor'), delta(3, 'r1', 'r1:1', 9, 'ld')])
    expect(t.grown[0]?.text).toBe('Hello world')
  })

  test('offsets count UTF-16 units', () => {
    const t = all([started(1, 'r1'), delta(3, 'r1', 'r1:1', 0, '😀'), delta(3, 'r1', 'r1:1', 2, '!')])
    expect(t.grown[0]?.text).toBe('😀!')
  })

  test('a reconnect over a restart in the middle of an answer leaves no gap and no double', () => {
    fc.assert(fc.property(pieces, pieces, fc.nat(20), fc.nat(20), (first, second, cut, back) => {
      const before = turn(1, 'r1', first).slice(0, cut)
      let t = all(before)
      const at = Math.max(0, through(t) - (back % 3)) // it may come back with an older cursor
      const after = turn(1, 'r1', second) // the resumed run gives the answer again
      const line = after.filter(e => e.synthetic || e.sequence > at)
      // what was stored before is the same; only the end of the run differs
      t = apply(t, line, 0)
      const seen = t.lines.map(l => l.sequence)
      expect(seen).toEqual([1, 2, 3, 4, 5, 6])
      expect(t.grown).toEqual([])
      expect(t.run).toBeUndefined()
    }))
  })

  test('what runs is known from the record alone', () => {
    const events = turn(1, 'r1', ['a']).filter(e => !e.synthetic)
    expect(all(events.slice(0, 2)).run).toBe('r1')
    expect(all(events.slice(1, 3)).run).toBe('r1') // read backwards: the beginning of the turn is not here
    expect(all(events).run).toBeUndefined()
  })

  test('a failing model keeps its time while its sentence changes, and goes with the first text', () => {
    const fails = (n: number, t: string): Event => ({ ...base(n, 'r1'), synthetic: true, type: 'item.completed', data: { item: { id: 'w', type: 'status', parts: text(t), trouble: { model: 'm', kind: 'overload', status: 500, cause: 'm answers 500', sentence: t, time: base(n, 'r1').time, next_try: new Date(Date.parse(base(n, 'r1').time) + 2000).toISOString() } } } })
    let t = apply(all([started(1, 'r1')]), [fails(2, 'm answers 500; next try in 1 s')], 1000)
    t = apply(t, [fails(2, 'm answers 500; next try in 2 s')], 3000)
    expect(t.status).toMatchObject({ run: 'r1', text: 'm answers 500; next try in 2 s', since: 1000, failing: { status: 500 }, due: 5000 })
    t = apply(t, [status(2, 'r1', 'thinking')], 4000)
    expect(t.status).toEqual({ run: 'r1', text: 'thinking', since: 4000 })
  })
  test('a model that is asked and sends nothing is known until it answers, and takes nothing away of what it failed with', () => {
    const at = base(2, 'r1').time
    const asked: Event = { ...base(2, 'r1'), synthetic: true, type: 'model.asked', data: { model: 'm', provider: 'OpenAI', time: new Date(Date.parse(at) - 4000).toISOString() } }
    let t = apply(all([started(1, 'r1')]), [asked], 10_000)
    expect(t.asked).toEqual({ run: 'r1', who: 'OpenAI', since: 6000 }) // the page was loaded four seconds later
    const fails: Event = { ...base(2, 'r1'), synthetic: true, type: 'item.completed', data: { item: { id: 'w', type: 'status', parts: text('no'), trouble: { model: 'm', kind: 'overload', cause: 'no', sentence: 'no', time: at } } } }
    t = apply(t, [fails], 11_000)
    expect(t.asked).toBeUndefined()
    t = apply(t, [asked], 12_000)
    expect(t.status?.text).toBe('no')
    t = apply(t, [{ ...base(2, 'r1'), synthetic: true, type: 'item.delta', data: { item_id: 'a', part: 0, offset: 0, text: 'Hello' } }], 13_000)
    expect([t.asked, t.status]).toEqual([undefined, undefined])
  })
  test('what a command writes is known until its result is stored or its turn ends, and not again after that', () => {
    const wrote = (text: string, lines = 0): Event => ({ ...base(4, 'r1'), synthetic: true, type: 'item.output', data: { item_id: 'c-r1', text, lines } })
    const whole = turn(1, 'r1', ['done'])
    let t = apply(all(whole.slice(0, 5)), [wrote('one\n', 1), wrote('two\n', 2)], 0)
    expect(t.output.get('c-r1')).toEqual({ text: 'two\n', lines: 2, run: 'r1' })
    const cut = apply(t, [ended(4, 'r1', 'user_stopped')], 0)
    expect(cut.output.size).toBe(0)
    expect(apply(cut, [wrote('late')], 0)).toBe(cut)
    t = apply(t, whole.slice(5, 6), 0)
    expect(t.output.size).toBe(0)
    expect(apply(t, [wrote('late')], 0)).toBe(t)
  })
  test('a status is shown until something happens', () => {
    let t = all([started(1, 'r1'), status(2, 'r1', 'model busy')])
    expect(t.status?.text).toBe('model busy')
    t = apply(t, [delta(3, 'r1', 'r1:1', 0, 'x')], 0)
    expect(t.status).toBeUndefined()
    t = all([started(1, 'r1'), ended(2, 'r1'), status(3, 'r1', 'late')])
    expect(t.status).toBeUndefined()
  })

  test('a new generation begins with nothing, and an old one does not come back', () => {
    const start = (session: string, generation: number): Event => ({ ...base(1, null, session), synthetic: true, type: 'session.started', data: { key: 'k', generation } })
    let t = apply(nothing, [start('s1', 1), ...turn(1, 'r1', ['a'])], 0)
    t = apply(t, [start('s2', 2)], 0)
    expect([t.sessionId, t.generation, t.lines.length, t.ended.size]).toEqual(['s2', 2, 0, 0])
    expect(apply(t, [...turn(1, 'r1', ['a']), start('s1', 1), start('s2', 2)], 0)).toBe(t)
  })

  test('what changes nothing gives the same object back', () => {
    const t = all(turn(1, 'r1', ['a', 'b']))
    expect(apply(t, turn(1, 'r1', ['a', 'b']), 1)).toBe(t)
  })
})

describe('rows', () => {
  test('a turn is a message, folded steps, an answer with its foot', () => {
    const rows = rowsOf(all(turn(1, 'r1', ['an', 'swer'])).lines)
    expect(rows.map(r => r.kind)).toEqual(['day', 'user', 'steps', 'answer'])
    const answer = rows[3]
    expect(answer?.kind === 'answer' && [answer.text, answer.foot?.state, answer.asked]).toEqual(['answer', 'completed', 2])
    const steps = rows[2]
    expect(steps?.kind === 'steps' && [steps.over, steps.calls[0]?.result]).toEqual([true, 'result'])
  })

  test('a run without an answer says how it ended', () => {
    const t = all([started(1, 'r1'), stored(2, 'r1', { id: 'i', type: 'message', role: 'user', parts: text('q') }), ended(3, 'r1', 'user_stopped')])
    const last = rowsOf(t.lines).at(-1)
    expect(last?.kind === 'end' && last.foot.state).toBe('user_stopped')
  })

  test('rows that did not change are the same objects', () => {
    const a = rowsOf(all(turn(1, 'r1', ['a'])).lines)
    const b = rowsOf(all([...turn(1, 'r1', ['a']), ...turn(7, 'r2', ['b'])]).lines, a)
    for (const [i, r] of a.entries()) expect(b[i]).toBe(r)
  })
})
