import { get, post, segment } from '../api/http'
import type { Approval, List } from '../api/types'
import { needs, signed } from './app'
import { Atom } from './atom'
import { line } from './line'

// What waits for a yes or a no, oldest first. The gateway is asked again whenever it says that something changed.
export const approvals = new Atom<readonly Approval[]>([])

let asking = false
let again = false

async function read(): Promise<void> {
  if (signed.get().state !== 'in') { approvals.set([]); return }
  if (asking) { again = true; return }
  asking = true
  try {
    const list = await get<List<Approval>>('/v1/approvals?state=pending&limit=500')
    approvals.set([...list.items].reverse()) // they come newest first
  } catch { /* the live line tells when the gateway is back */ } finally {
    asking = false
    if (again) { again = false; void read() }
  }
}

needs.subscribe(() => { void read() })
line.listen(d => {
  if (d.type === 'hello' || (d.type === 'event' && d.event.type.startsWith('permission.'))) void read()
})

export type Decision = 'once' | 'session' | 'deny'

// decide answers a question. It throws what the gateway says when somebody else was first.
export async function decide(id: string, decision: Decision, reason?: string): Promise<Approval> {
  try {
    return await post<Approval>(`/v1/approvals/${segment(id)}`, { decision, ...(reason && { reason }) })
  } finally {
    void read()
  }
}
