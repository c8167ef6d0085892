import fc from 'fast-check'
import { expect, test } from 'vitest'
import { counted, diff } from './diff'

const shown = (a: string, b: string) => diff(a, b).map(l => l.sign + l.text)

test('a diff shows what stays, goes and comes', () => {
  expect(shown('one\ntwo\nthree\n', 'one\n2\nthree\nfour\n')).toEqual([' one', '-two', '+2', ' three', '+four'])
  expect(shown('', 'new\n')).toEqual(['+new'])
  expect(shown('gone', '')).toEqual(['-gone'])
  expect(counted(diff('a\nb\nc', 'a\nc\nd'))).toEqual({ more: 1, less: 1 })
})

test('a diff gives back both texts, whatever they are', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 30 }).map(l => l.map(x => `${x}\n`).join(''))
  fc.assert(fc.property(text, text, (a, b) => {
    const lines = diff(a, b)
    expect(lines.filter(l => l.sign !== '+').map(l => `${l.text}\n`).join('')).toBe(a)
    expect(lines.filter(l => l.sign !== '-').map(l => `${l.text}\n`).join('')).toBe(b)
  }))
})

test('a diff of a thousand other lines is quick', () => {
  const long = (p: string) => Array.from({ length: 20_000 }, (_, i) => `${p}${i}`).join('\n')
  expect(counted(diff(long('a'), long('b')))).toEqual({ more: 20_000, less: 20_000 })
})
