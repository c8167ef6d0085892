import { Atom } from '../store/atom'
import type { Down, Up } from './types'

// LineState is the live line as people are told of it. since is when it was cut; retry when it is tried again.
export type LineState = { state: 'open' | 'connecting' | 'waiting' | 'closed'; since: number; tries: number }

const slowest = 10_000 // ms between two tries
const silent = 10_000 // ms in which a connection must greet

// Line is the one websocket of a page. It comes back by itself, at once when the browser is online again, until stop.
// What is sent while it is cut is not kept: those who follow or send do it again when they hear "hello".
export class Line {
  readonly state = new Atom<LineState>({ state: 'closed', since: 0, tries: 0 })
  private socket: WebSocket | undefined
  private timer: ReturnType<typeof setTimeout> | undefined
  private listeners = new Set<(down: Down) => void>()
  private wanted = false
  private readonly url: string
  private readonly refused: () => void

  // refused is called when a try fails, so that somebody looks whether we are still signed in.
  constructor(url: string, refused: () => void) {
    this.url = url
    this.refused = refused
  }

  listen(f: (down: Down) => void): () => void {
    this.listeners.add(f)
    return () => { this.listeners.delete(f) }
  }

  start() {
    if (this.wanted) return
    this.wanted = true
    window.addEventListener('online', this.now)
    document.addEventListener('visibilitychange', this.now)
    this.connect()
  }

  stop() {
    this.wanted = false
    window.removeEventListener('online', this.now)
    document.removeEventListener('visibilitychange', this.now)
    clearTimeout(this.timer)
    this.socket?.close()
    this.socket = undefined
    this.state.set({ state: 'closed', since: Date.now(), tries: 0 })
  }

  // send says whether it went out; what became of it is heard.
  send(up: Up): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN || this.state.get().state !== 'open') return false
    this.socket.send(JSON.stringify(up))
    return true
  }

  // now tries at once when it is waiting.
  now = () => {
    if (this.wanted && this.state.get().state === 'waiting' && document.visibilityState === 'visible') {
      clearTimeout(this.timer)
      this.connect()
    }
  }

  private connect() {
    const { since, tries } = this.state.get()
    this.state.set({ state: 'connecting', since: since || Date.now(), tries })
    const socket = new WebSocket(this.url)
    this.socket = socket
    const late = setTimeout(() => { socket.close() }, silent)
    socket.onmessage = m => {
      if (socket !== this.socket) return
      let down: Down
      try { down = JSON.parse(m.data as string) as Down } catch { return } // a frame of a newer gateway
      if (down.type === 'hello') {
        clearTimeout(late)
        this.state.set({ state: 'open', since: Date.now(), tries: 0 })
      }
      for (const f of [...this.listeners]) f(down)
    }
    socket.onclose = () => {
      clearTimeout(late)
      if (socket === this.socket && this.wanted) this.lost()
    }
  }

  private lost() {
    this.socket = undefined
    const was = this.state.get()
    const tries = was.state === 'open' ? 0 : was.tries + 1
    const after = Math.min(slowest, 250 * 2 ** tries) * (0.75 + Math.random() / 2)
    this.state.set({ state: 'waiting', since: was.state === 'open' ? Date.now() : was.since, tries })
    this.refused()
    this.timer = setTimeout(() => { this.connect() }, after)
  }
}
