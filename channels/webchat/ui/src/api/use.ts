import { useCallback, useEffect, useRef, useState } from 'react'
import { get } from './http'
import type { List } from './types'

// What was read last, so that coming back to a page shows it at once while it is read again.
const kept = new Map<string, unknown>()
const keptMost = 60

function keep(path: string, data: unknown) {
  kept.delete(path)
  kept.set(path, data)
  const oldest = kept.keys().next().value
  if (kept.size > keptMost && oldest !== undefined) kept.delete(oldest)
}

// forget drops what was kept, as after a sign-out.
export function forget() { kept.clear() }

export type Loaded<T> = { data: T | undefined; error: Error | undefined; loading: boolean; reload: () => void }

// useApi reads a path of the API: at once, again every so many ms if told, when the window is looked at again, and on
// reload, and when again is another value. A null path reads nothing. While it is read again the old data stays.
export function useApi<T>(path: string | null, { every, again: what }: { every?: number; again?: unknown } = {}): Loaded<T> {
  const [state, set] = useState<{ path: string | null; data?: T; error?: Error; loading: boolean }>({ path: null, loading: false })
  const [turn, again] = useState(0)
  const reload = useCallback(() => { again(n => n + 1) }, [])
  useEffect(() => {
    if (path === null) return
    const stop = new AbortController()
    set(s => ({ path, data: s.path === path ? s.data : kept.get(path) as T | undefined, loading: true }))
    get<T>(path, stop.signal).then(
      data => { keep(path, data); set({ path, data, loading: false }) },
      (error: unknown) => { if (!stop.signal.aborted) set(s => ({ ...s, error: error as Error, loading: false })) },
    )
    return () => { stop.abort() }
  }, [path, turn, what])
  useEffect(() => {
    if (path === null) return
    const look = () => { if (document.visibilityState === 'visible') reload() }
    document.addEventListener('visibilitychange', look)
    const timer = every ? setInterval(look, every) : undefined
    return () => { document.removeEventListener('visibilitychange', look); clearInterval(timer) }
  }, [path, every, reload])
  const mine = state.path === path
  return { data: mine ? state.data : path === null ? undefined : kept.get(path) as T | undefined, error: mine ? state.error : undefined, loading: mine ? state.loading : path !== null, reload }
}

// usePages reads a list page by page: more() reads the next one while there is one. What names the next page goes into
// the query parameter given by name ("after"; of a log "offset").
export function usePages<T>(path: string | null, parameter = 'after'): Loaded<T[]> & { more?: () => void; fetching: boolean } {
  const first = useApi<List<T>>(path)
  const [rest, setRest] = useState<{ of?: List<T>; items: T[]; next?: string | null; fetching: boolean; error?: Error }>({ items: [], fetching: false })
  const mine = rest.of === first.data ? rest : { items: [], next: first.data?.next, fetching: false, error: undefined }
  const busy = useRef(false)
  const next = mine.next
  const more = next && path !== null ? () => {
    if (busy.current) return
    busy.current = true
    const of = first.data
    setRest({ ...mine, of, fetching: true, error: undefined })
    get<List<T>>(`${path}${path.includes('?') ? '&' : '?'}${parameter}=${encodeURIComponent(next)}`).then(
      page => { setRest({ of, items: [...mine.items, ...page.items], next: page.next, fetching: false }) },
      (error: unknown) => { setRest({ ...mine, of, fetching: false, error: error as Error }) },
    ).finally(() => { busy.current = false })
  } : undefined
  return { data: first.data && [...first.data.items, ...mine.items], error: first.error ?? mine.error, loading: first.loading, reload: first.reload, more, fetching: mine.fetching }
}

// useAct runs something that changes the gateway: busy while it runs, with the error that it ended with.
export function useAct<A extends unknown[]>(act: (...args: A) => Promise<unknown>): { run: (...args: A) => Promise<boolean>; busy: boolean; error: Error | undefined } {
  const [state, set] = useState<{ busy: boolean; error?: Error }>({ busy: false })
  const run = async (...args: A) => {
    set({ busy: true })
    try { await act(...args); set({ busy: false }); return true } catch (error) { set({ busy: false, error: error as Error }); return false }
  }
  return { run, busy: state.busy, error: state.error }
}
