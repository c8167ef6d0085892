import { useEffect, useState } from 'react'
import { segment } from '../api/http'
import type { RunDetail } from '../api/types.gen'
import { useApi } from '../api/use'
import { live } from './state'

// useRun reads a run, and again whenever something happened in it, until it has ended.
export function useRun(run: string) {
  const [seen, saw] = useState(0)
  const loaded = useApi<RunDetail>(`/v1/runs/${segment(run)}`, { again: seen })
  const going = loaded.data ? live(loaded.data.state) : false
  useEffect(() => {
    if (!going) return
    const events = new EventSource(`/v1/runs/${segment(run)}/events`)
    let timer: ReturnType<typeof setTimeout> | undefined
    const soon = () => { timer ??= setTimeout(() => { timer = undefined; saw(n => n + 1) }, 300) }
    for (const type of ['item.completed', 'turn.started', 'turn.ended', 'error']) events.addEventListener(type, soon)
    events.addEventListener('turn.ended', () => { events.close() })
    return () => { clearTimeout(timer); events.close() }
  }, [run, going])
  return { ...loaded, seen }
}
