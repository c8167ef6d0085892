import { expect, test } from 'vitest'
import { cost, lasted, tokens } from './format'

test('numbers are short and honest', () => {
  expect(tokens(950)).toBe('950')
  expect(tokens(12_345)).toBe('12.3k')
  expect(tokens(1_200_000)).toBe('1.2M')
  expect(cost(0)).toBe('$0')
  expect(cost(0.00001)).toBe('<$0.0001')
  expect(cost(0.0123)).toBe('$0.012')
  expect(lasted(400)).toBe('400 ms')
  expect(lasted(1400)).toBe('1.4 s')
  expect(lasted(185_000)).toBe('3 min 5 s')
})
