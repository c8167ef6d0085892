import { get } from '../api/http'
import type { List, Session } from '../api/types'
import { agentChosen } from './app'
import { Atom } from './atom'
import { line } from './line'

// The sessions of the chosen agent, of every channel, newest first. The live line keeps them true.
export type Sessions = { items: readonly Session[]; next?: string | null; state: 'loading' | 'ready' | 'failed'; error?: Error }

export const sessions = new Atom<Sessions>({ items: [], state: 'loading' })

const page = 100
let asked = 0

const path = (after?: string) => `/v1/sessions?limit=${page}${agentChosen.get() ? `&agent=${encodeURIComponent(agentChosen.get())}` : ''}${after ? `&after=${encodeURIComponent(after)}` : ''}`

// read reads the list again; what is shown stays until the new one is there.
export async function read() {
  const mine = ++asked
  try {
    const l = await get<List<Session>>(path())
    if (mine === asked) sessions.set({ items: l.items, next: l.next, state: 'ready' })
  } catch (error) {
    if (mine === asked) sessions.set({ ...sessions.get(), state: sessions.get().items.length ? 'ready' : 'failed', error: error as Error })
  }
}

let fetching = false

// more reads the next page.
export async function more() {
  const { next } = sessions.get()
  if (!next || fetching) return
  fetching = true
  const mine = asked
  try {
    const l = await get<List<Session>>(path(next))
    if (mine !== asked) return
    const have = new Set(sessions.get().items.map(s => s.key))
    sessions.set({ ...sessions.get(), items: [...sessions.get().items, ...l.items.filter(s => !have.has(s.key))], next: l.next })
  } catch { /* the next scroll tries again */ } finally { fetching = false }
}

// put takes a session as it is now.
export function put(s: Session) {
  const agent = agentChosen.get()
  if (agent && s.agent !== agent) return
  const rest = sessions.get().items.filter(x => x.key !== s.key)
  const i = rest.findIndex(x => x.updated <= s.updated)
  rest.splice(i < 0 ? rest.length : i, 0, s)
  sessions.set({ ...sessions.get(), items: rest })
}

export function gone(key: string) { sessions.set({ ...sessions.get(), items: sessions.get().items.filter(s => s.key !== key) }) }

line.listen(d => {
  if (d.type === 'session') put(d.item)
  if (d.type === 'hello' || d.type === 'sessions') void read()
})
agentChosen.subscribe(() => {
  sessions.set({ items: [], state: 'loading' })
  void read()
})

// Former versions kept what was read in the browser alone.
try { localStorage.removeItem('parley.seen'); localStorage.removeItem('parley.first') } catch { /* it keeps nothing */ }
