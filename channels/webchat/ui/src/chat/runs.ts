import { useEffect, useState } from 'react'
import { get, segment } from '../api/http'
import type { Run } from '../api/types'

// What a finished run cost does not change: it is asked for once, when its answer comes into view, three at a time.
const kept = new Map<string, Run>()
const asked = new Map<string, Promise<Run | undefined>>()
const queue: (() => void)[] = []
let busy = 0

async function slot<T>(f: () => Promise<T>): Promise<T> {
  if (busy >= 3) await new Promise<void>(go => { queue.push(go) })
  busy++
  try { return await f() } finally { busy--; queue.shift()?.() }
}

function ask(id: string): Promise<Run | undefined> {
  const p = asked.get(id) ?? slot(() => get<Run>(`/v1/runs/${segment(id)}`)).then(r => { kept.set(id, r); return r }, () => { asked.delete(id); return undefined })
  asked.set(id, p)
  return p
}

export function useRunOf(id: string | undefined): Run | undefined {
  const [, seen] = useState(0)
  useEffect(() => {
    if (!id || kept.has(id)) return
    let here = true
    const timer = setTimeout(() => { void ask(id).then(() => { if (here) seen(n => n + 1) }) }, 150) // not what is only scrolled past
    return () => { here = false; clearTimeout(timer) }
  }, [id])
  return id ? kept.get(id) : undefined
}
