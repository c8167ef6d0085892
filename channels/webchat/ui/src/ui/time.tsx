import { useEffect, useState, useSyncExternalStore } from 'react'
import { ago, exact } from './format'

let now = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

// useNow is the time, moving every ten seconds while somebody looks.
export function useNow(): number {
  return useSyncExternalStore(subscribe, read)
}

// subscribe is the same function at every render: a new one would be subscribed again each time.
function subscribe(f: () => void): () => void {
  if (!listeners.size) now = Date.now() // it stood still while nobody looked
  listeners.add(f)
  timer ??= setInterval(() => { now = Date.now(); listeners.forEach(l => { l() }) }, 10_000)
  return () => {
    listeners.delete(f)
    if (!listeners.size) { clearInterval(timer); timer = undefined }
  }
}

const read = () => now

// Ago is a relative time with the exact one on hover.
export function Ago({ at }: { at: string | null | undefined }) {
  const t = useNow()
  if (!at) return <span className="faint">–</span>
  const d = new Date(at)
  return <time dateTime={at} title={exact(d)} className="num">{ago(d, Math.max(t, Date.now()))}</time>
}

// useSeconds counts the seconds since a time.
export function useSeconds(since: number): number {
  const [n, set] = useState(() => Math.floor((Date.now() - since) / 1000))
  useEffect(() => {
    const timer = setInterval(() => { set(Math.floor((Date.now() - since) / 1000)) }, 1000)
    return () => { clearInterval(timer) }
  }, [since])
  return Math.max(0, n)
}
