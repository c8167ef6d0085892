import { useSyncExternalStore } from 'react'

// Atom is a value that is replaced, never changed, and those who watch it.
export class Atom<T> {
  private value: T
  private listeners = new Set<() => void>()
  constructor(value: T) { this.value = value }
  get = (): T => this.value
  set = (value: T) => {
    if (Object.is(value, this.value)) return
    this.value = value
    for (const f of [...this.listeners]) f()
  }
  update = (f: (value: T) => T) => { this.set(f(this.value)) }
  subscribe = (f: () => void) => {
    this.listeners.add(f)
    return () => { this.listeners.delete(f) }
  }
}

export const useAtom = <T>(a: Atom<T>): T => useSyncExternalStore(a.subscribe, a.get)
