import { useEffect, useMemo, useRef, useState } from 'react'
import { conversation } from '../store/conversation'
import { useAtom } from '../store/atom'
import { look, outbox, type Sent } from '../store/outbox'
import { growingRows, rowsOf, type Row } from '../store/rows'
import { signed } from '../store/app'
import { leave, see } from '../store/reads'
import type { Agent } from '../api/types'

const none: Sent[] = []

// useConversation opens a session for as long as the component is there.
export function useConversation(key: string, generation: string) {
  const c = useMemo(() => conversation(key, generation), [key, generation])
  useEffect(() => c.open(), [c])
  return { c, view: useAtom(c.view) }
}

// useRows are the stored rows and what grows behind them.
export function useRows(c: ReturnType<typeof conversation>): { stored: readonly Row[]; growing: readonly Row[] } {
  const { t, older } = useAtom(c.view)
  const whole = older === 'none'
  const old = useRef<readonly Row[]>([])
  const stored = useMemo(() => (old.current = rowsOf(t.lines, old.current, whole)), [t.lines, whole])
  const growing = useMemo(() => growingRows(t, stored), [t, stored])
  return { stored, growing }
}

// useSent are the messages on their way to a session; without one those of the new chat of this name.
export function useSent(key: string | undefined, name?: string): readonly Sent[] {
  const all = useAtom(outbox)
  const mine = useMemo(() => (key === undefined && name === undefined ? none : all.filter(m => (key !== undefined ? m.key === key || m.session === key : m.session === name))), [all, key, name])
  return mine
}

// useLooking asks what became of stored messages that no transcript shows although nothing runs.
export function useLooking(sent: readonly Sent[], idle: boolean) {
  useEffect(() => {
    const stored = sent.filter(m => m.state === 'stored')
    if (!idle || !stored.length) return
    const timer = setInterval(() => { for (const m of stored) void look(m) }, 3000)
    return () => { clearInterval(timer) }
  }, [sent, idle])
}

// useSeen marks what is read: looked at, at its end, in a window that is looked at.
export function useSeen(key: string, sessionId: string, sequence: number, atEnd: boolean) {
  useEffect(() => {
    if (!sessionId || !atEnd) return
    const mark = () => { if (document.visibilityState === 'visible') see(key, sessionId, sequence) }
    mark()
    document.addEventListener('visibilitychange', mark)
    return () => { document.removeEventListener('visibilitychange', mark) }
  }, [key, sessionId, sequence, atEnd])
  useEffect(() => () => { leave(key) }, [key])
}

// useAgents are the agents; the chosen one first looked for, else the default.
export function useAgents(): Agent[] {
  const s = useAtom(signed)
  return s.state === 'in' ? s.me.agents : []
}

export function useSince(what: unknown): number {
  const [at, set] = useState(() => Date.now())
  useEffect(() => { set(Date.now()) }, [what])
  return at
}
