import type { Generation } from '../api/types'

// A message that was edited or answered again has versions: generations that part before it. A generation shows the
// message of the one that it was copied from, unless it parted there or before.
export type Point = { before: number; at: number; versions: string[]; newest: string[] }

// pointsOf are the places where the shown generation has versions beside it: at counts from 0 into versions, and newest
// says for each version the newest generation that shows it.
export function pointsOf(all: readonly Generation[], shown: string): Point[] {
  const by = new Map(all.map(g => [g.session_id, g]))
  const shows = (g: Generation, before: number): Generation => { // whose message stands there
    const from = g.forked_from ? by.get(g.forked_from) : undefined
    return from && (g.forked_before ?? 0) > before ? shows(from, before) : g
  }
  const root = (g: Generation, before: number): Generation => {
    const v = shows(g, before)
    const from = v.forked_from && v.forked_before === before ? by.get(v.forked_from) : undefined
    return from ? root(from, before) : v
  }
  const here = by.get(shown)
  if (!here) return []
  const places = new Set(all.flatMap(g => (g.forked_before && g.forked_from && by.has(g.forked_from) ? [g.forked_before] : [])))
  const points: Point[] = []
  for (const before of places) {
    const mine = root(here, before)
    const versions = all.filter(g => root(g, before) === mine && shows(g, before) === g && (g === mine || g.forked_before === before)).sort((a, b) => a.generation - b.generation)
    const at = versions.indexOf(shows(here, before))
    if (at < 0 || versions.length < 2) continue
    const newest = versions.map(v => all.filter(g => shows(g, before) === v).reduce((a, g) => (g.generation > a.generation ? g : a)).session_id)
    points.push({ before, at, versions: versions.map(v => v.session_id), newest })
  }
  return points
}
