import { expect, test } from 'vitest'
import type { Generation } from '../api/types'
import { pointsOf } from './branches'

const gen = (generation: number, from?: number, before?: number): Generation => ({
  session_id: `g${generation}`, generation, created: '', sequence: 9, preview: '', usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, totalCostUsd: null, durationMs: 0 },
  ...(from ? { forked_from: `g${from}`, forked_before: before } : {}),
})

test('a message that was never edited has one version', () => {
  expect(pointsOf([gen(1)], 'g1')).toEqual([])
  expect(pointsOf([gen(2), gen(1)], 'g2')).toEqual([]) // /new forks nothing
})

test('an edit has the old version beside it', () => {
  const all = [gen(2, 1, 6), gen(1)]
  expect(pointsOf(all, 'g2')).toEqual([{ before: 6, at: 1, versions: ['g1', 'g2'], newest: ['g1', 'g2'] }])
  expect(pointsOf(all, 'g1')).toEqual([{ before: 6, at: 0, versions: ['g1', 'g2'], newest: ['g1', 'g2'] }])
})

test('editing the edit makes a third version of the same message', () => {
  expect(pointsOf([gen(3, 2, 6), gen(2, 1, 6), gen(1)], 'g3')).toEqual([{ before: 6, at: 2, versions: ['g1', 'g2', 'g3'], newest: ['g1', 'g2', 'g3'] }])
})

test('an edit further down keeps the versions above, and leads back to the newest of each', () => {
  const all = [gen(3, 2, 10), gen(2, 1, 6), gen(1)]
  expect(pointsOf(all, 'g3')).toEqual([
    { before: 10, at: 1, versions: ['g2', 'g3'], newest: ['g2', 'g3'] },
    { before: 6, at: 1, versions: ['g1', 'g2'], newest: ['g1', 'g3'] },
  ])
  expect(pointsOf(all, 'g1').map(p => p.before)).toEqual([6])
})

test('an edit further up starts from what all below had in common', () => {
  const all = [gen(3, 2, 2), gen(2, 1, 6), gen(1)]
  expect(pointsOf(all, 'g3')).toEqual([{ before: 2, at: 1, versions: ['g1', 'g3'], newest: ['g2', 'g3'] }])
  expect(pointsOf(all, 'g2').map(p => [p.before, p.at])).toEqual([[2, 0], [6, 1]])
})
