import { get, Problem, segment } from '../api/http'
import type { Event, List } from '../api/types'
import { Atom } from './atom'
import { line } from './line'
import { settled } from './outbox'
import { apply, nothing, through, type Transcript } from './transcript'

export type View = {
  t: Transcript
  state: 'loading' | 'ready' | 'failed'
  error?: Error
  older: 'none' | 'more' | 'loading' | 'failed' // what stands before the first line
}

const page = 80 // lines of the first page; each one further back has twice as many
const mostAPage = 480
const far = 9_000_000_000_000_000

// Conversation is one session as this page holds it: its newest lines first, older ones on request, and what is told live
// for as long as somebody looks. With a generation it is an old one, which nothing is told of.
export class Conversation {
  readonly view = new Atom<View>({ t: nothing, state: 'loading', older: 'none' })
  readonly key: string
  readonly generation: string
  private lookers = 0
  private waiting: Event[] = []
  private due = false
  private loading = 0
  private step = page

  constructor(key: string, generation = '') {
    this.key = key
    this.generation = generation
  }

  // open follows until the returned function is called.
  open(): () => void {
    if (this.lookers++ === 0) {
      if (this.view.get().state === 'ready') this.follow()
      else void this.load()
    }
    return () => {
      if (--this.lookers === 0 && !this.generation) line.send({ type: 'unfollow', key: this.key })
    }
  }

  // hear takes what the live line says of this session.
  hear(e: Event) {
    if (this.generation) return
    this.waiting.push(e)
    if (this.due) return
    this.due = true
    if (document.hidden) setTimeout(this.flush, 50)
    else requestAnimationFrame(this.flush)
  }

  // back is called when the line is there again.
  back() {
    if (!this.lookers || this.generation) return
    if (this.view.get().state === 'ready') this.follow()
    else void this.load()
  }

  // load reads the newest lines and follows from there. What is shown stays until they are here.
  async load() {
    const mine = ++this.loading
    this.step = page
    try {
      const l = await this.read(far)
      if (mine !== this.loading) return
      this.waiting = []
      const old = this.view.get().t
      const t = apply(nothing, l.items)
      const generation = t.sessionId === old.sessionId ? old.generation : 0
      this.set({ t: { ...t, generation }, state: 'ready', older: l.next ? 'more' : 'none' })
    } catch (error) {
      if (mine !== this.loading) return
      if (error instanceof Problem && error.status === 404 && !this.generation) this.set({ t: nothing, state: 'ready', older: 'none' }) // nothing was said yet
      else { this.view.set({ ...this.view.get(), state: 'failed', error: error as Error }); return }
    }
    this.follow()
  }

  // older reads the page before the first line.
  async older() {
    const v = this.view.get()
    const first = v.t.lines[0]
    if (v.older === 'none' || v.older === 'loading' || !first) return
    this.view.set({ ...v, older: 'loading' })
    const session = v.t.sessionId
    try {
      this.step = Math.min(this.step * 2, mostAPage)
      const l = await this.read(first.sequence)
      const now = this.view.get()
      if (now.t.sessionId !== session) return
      this.view.set({ ...now, t: apply(now.t, l.items), older: l.next ? 'more' : 'none' })
    } catch {
      this.view.set({ ...this.view.get(), older: 'failed' })
    }
  }

  private read(before: number): Promise<List<Event>> {
    return get<List<Event>>(`/v1/sessions/${segment(this.key)}/entries?before=${before}&limit=${this.step}${this.generation ? `&session_id=${segment(this.generation)}` : ''}`)
  }

  private follow() {
    if (this.generation || !this.lookers) return
    const { t } = this.view.get()
    line.send({ type: 'follow', key: this.key, session_id: t.sessionId, after: through(t) })
  }

  private flush = () => {
    this.due = false
    const events = this.waiting
    this.waiting = []
    if (!events.length || this.view.get().state === 'loading') return
    const v = this.view.get()
    const t = apply(v.t, events)
    if (t === v.t) return
    this.set({ ...v, t, older: t.sessionId === v.t.sessionId || !v.t.sessionId ? v.older : 'none' })
  }

  private set(v: View) {
    this.view.set(v)
    settled(v.t.done)
  }
}

// Conversations that were looked at last are kept, so that going back to one shows it at once.
const kept = new Map<string, Conversation>()
const keptMost = 12

export function conversation(key: string, generation = ''): Conversation {
  const id = `${key} ${generation}`
  const c = kept.get(id) ?? new Conversation(key, generation)
  kept.delete(id)
  kept.set(id, c)
  for (const [name, old] of kept) {
    if (kept.size <= keptMost) break
    if (old !== c) kept.delete(name)
  }
  return c
}

line.listen(d => {
  if (d.type === 'event') kept.get(`${d.key} `)?.hear(d.event)
  if (d.type === 'hello') for (const c of kept.values()) c.back()
})
