import { expect, test } from 'vitest'
import type { AuditItem } from '../api/types.gen'
import { kinds, say } from './say'

const row = (kind: string, what: Record<string, unknown> = {}): AuditItem => ({ n: 1, time: '2026-01-31T09:00:00Z', kind, what, chain: 'c', prev: '', hash: 'h', body: '{}' })

test('each kind has a sentence of its own', () => {
  const all = ['approval.asked', 'approval.decided', 'approval.expired', 'exec.started', 'exec.refused', 'exec.ended', 'egress.refused', 'pairing.decided', 'people.linked', 'config.loaded', 'config.reloaded', 'config.refused', 'config.changed', 'config.undone',
    'run.paused', 'run.resumed', 'stop.all', 'channel.login', 'channel.logout', 'signin.code', 'signin.done', 'store.loss', 'store.fresh', 'store.unwitnessed']
  for (const kind of all) {
    expect(say(row(kind)).text, kind).not.toBe(kind)
    expect(kinds.some(k => kind.startsWith(`${k.value}.`)), kind).toBe(true)
  }
})

test('a sentence says what matters', () => {
  expect(say(row('store.loss', { inputs: 3, answers: 0, audit_rows: 2 })).line).toBe('3 messages · 2 rows of this log')
  expect(say(row('exec.started', { args: '{"command":"make test"}' }))).toMatchObject({ text: 'A command began', line: 'make test' })
  expect(say(row('exec.started', { args: '{"command":"cut in the mid' })).line).toBe('{"command":"cut in the mid')
  expect(say(row('approval.decided', { state: 'denied', tool: 'exec' })).text).toBe('Denied: exec')
  expect(say(row('egress.refused', { host: 'evil.example', port: 443, reason: 'not on the list', left_out: 3 })).text).toContain('3 more times')
  expect(say(row('something.new')).text).toBe('something.new')
  expect(say(row('exec.started', { args: { odd: true } })).line).toBe('')
})
