import { Atom } from './atom'

// Saved is a value that survives a reload and is the same in every tab. A browser that keeps nothing (private mode, full)
// still works until the tab is closed.
export class Saved<T> extends Atom<T> {
  constructor(name: string, first: T) {
    super(read(name, first))
    const set = this.set
    this.set = value => {
      set(value)
      try { localStorage.setItem(name, JSON.stringify(value)) } catch { /* kept in memory */ }
    }
    window.addEventListener('storage', e => { if (e.key === name) set(read(name, first)) })
  }
}

function read<T>(name: string, first: T): T {
  try {
    const text = localStorage.getItem(name)
    return text === null ? first : JSON.parse(text) as T
  } catch {
    return first
  }
}
