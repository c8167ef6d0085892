import { describe, expect, it } from 'vitest'
import { changesOf } from '../people/form'
import { codeOf } from './fresh'
import { unusedName, valuesOf } from './values'

describe('a code of the machine', () => {
  it('is found in what was pasted', () => {
    for (const pasted of ['http://127.0.0.1:8420/#code=ABC-1', 'WebChat: http://[::1]:8420/#code=ABC-1\n', '  ABC-1 ', '/#code=ABC-1']) expect(codeOf(pasted)).toBe('ABC-1')
  })
})

describe('names', () => {
  it('are not given twice', () => {
    expect(unusedName('claude', [])).toBe('claude')
    expect(unusedName('claude', ['claude', 'claude2'])).toBe('claude3')
  })
  it('are none where nothing is configured', () => {
    expect(valuesOf(undefined).models).toEqual([])
    expect(valuesOf({ path: '', since: '', yaml: '', values: { channels: null } }).channels).toEqual([])
  })
})

describe('what a form of a person changes', () => {
  const was = { id: 'ada', name: 'Ada', role: 'owner', tz: 'Europe/Berlin', accounts: [{ channel: 'tg', user: '1' }] }
  const now = { name: 'Ada', role: 'owner', tz: 'Europe/Berlin', accounts: [{ channel: 'tg', user: '1' }] }
  it('is no more than what differs', () => {
    expect(changesOf('people[ada]', was, now)).toEqual([])
    expect(changesOf('people[ada]', was, { ...now, tz: 'Europe/Paris' })).toEqual([{ path: 'people[ada].tz', value: 'Europe/Paris' }])
    expect(changesOf('people[ada]', was, { ...now, tz: '', name: '' })).toEqual([{ path: 'people[ada].name', remove: true }, { path: 'people[ada].tz', remove: true }])
    expect(changesOf('people[ada]', was, { ...now, accounts: [] })).toEqual([{ path: 'people[ada].accounts', remove: true }])
  })
  it('leaves a guest a guest, and the id the name', () => {
    expect(changesOf('people[ben]', { id: 'ben', name: 'ben' }, { name: '', role: 'guest', tz: '', accounts: [] })).toEqual([])
    expect(changesOf('people[ben]', { id: 'ben', name: 'ben' }, { name: 'ben', role: 'guest', tz: '', accounts: [] })).toEqual([])
  })
})
