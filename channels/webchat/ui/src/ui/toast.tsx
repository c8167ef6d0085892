import { useSyncExternalStore } from 'react'

type Toast = { id: number; text: string; act?: { label: string; run: () => void } }
let list: Toast[] = []
let next = 1
const listeners = new Set<() => void>()
const set = (l: Toast[]) => { list = l; listeners.forEach(f => { f() }) }

// toast says something that happened and can be missed without harm.
export function toast(text: string, act?: Toast['act']) {
  const id = next++
  set([...list.slice(-2), { id, text, act }])
  setTimeout(() => { set(list.filter(t => t.id !== id)) }, act ? 10_000 : 5000)
}

export function Toasts() {
  const shown = useSyncExternalStore(f => { listeners.add(f); return () => { listeners.delete(f) } }, () => list)
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(t => <div key={t.id} className="toast"><span>{t.text}</span>{t.act && <button type="button" onClick={() => { t.act?.run(); set(list.filter(x => x !== t)) }}>{t.act.label}</button>}</div>)}
    </div>
  )
}
