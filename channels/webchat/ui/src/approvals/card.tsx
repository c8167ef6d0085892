import { Link } from '@tanstack/react-router'
import { useEffect, useRef, useState, type KeyboardEvent, type Ref } from 'react'
import { Problem } from '../api/http'
import type { Approval } from '../api/types'
import { useAct } from '../api/use'
import { Unseen } from '../chat/markdown-view'
import { AgentLink, SessionLink } from '../runs/parts'
import { decide, type Decision } from '../store/approvals'
import { Button } from '../ui/button'
import { short, shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Failed } from '../ui/states'
import { toast } from '../ui/toast'
import './approval.css'

const said: Record<Decision, string> = { once: 'Allowed, this once.', session: 'Allowed in this session.', deny: 'Denied.' }

// ApprovalCard is one question: who asks, from where, the whole of what would be done and what it could touch, and until when.
export function ApprovalCard({ approval: a, here, gone, deny, done }: { approval: Approval; here?: boolean; gone?: boolean; deny?: Ref<HTMLButtonElement>; done?: () => void }) {
  const [chosen, choose] = useState<Decision>()
  const [saying, say] = useState(false)
  const card = useRef<HTMLElement>(null)
  const act = useAct(async (d: Decision, why?: string) => {
    choose(d)
    try {
      await decide(a.id, d, why)
    } catch (err) {
      if (err instanceof Problem && err.status === 409) toast(err.message) // somebody was first: the card is about to go
      throw err
    }
    toast(said[d])
    done?.()
  })
  const armed = useArmed()
  const left = useLeft(a.expires_at)
  const over = left <= 0
  const may = (d: Decision) => !gone && a.choices.includes(d)
  const button = (d: Decision, label: string, kind?: 'primary' | 'danger', ref?: Ref<HTMLButtonElement>) =>
    <Button ref={ref} kind={kind} disabled={act.busy || over || (d !== 'deny' && !armed)} busy={act.busy && chosen === d} aria-keyshortcuts={keyOf(d)} data-key={keyOf(d)} onClick={() => { void act.run(d) }}>{label}</Button>
  const risky = a.dangers.length > 0
  function keyOf(d: Decision): string | undefined { return risky && d !== 'deny' ? undefined : keys[d] } // what is dangerous wants a click
  // Keys act only while the card has the focus, and no key that is held down or goes with another.
  const onKey = (e: KeyboardEvent) => {
    if (saying || gone || over || act.busy || e.repeat || e.ctrlKey || e.metaKey || e.altKey || e.target instanceof HTMLTextAreaElement) return
    const key = e.key.toLowerCase()
    const d = (['once', 'session', 'deny'] as const).find(x => keyOf(x) === key && may(x))
    if (key === 'e' && may('deny')) say(true)
    else if (d && (d === 'deny' || armed)) void act.run(d)
    else return
    e.preventDefault()
  }
  return (
    <article ref={card} className={risky ? 'card stack ask risky' : 'card stack ask'} aria-label={`Approval: ${a.tool}`} onKeyDown={onKey}>
      <h3 className="row"><Icon name="warn" /><span className="grow">{a.tool === 'exec' ? risky ? 'Run this dangerous command?' : 'Run this command?' : <>Allow <code>{a.tool}</code>?</>}</span>
        <span className="badge warn num" title={new Date(a.expires_at).toLocaleString()}>{gone ? 'over' : over ? 'expired' : `expires in ${remaining(left)}`}</span></h3>
      <pre className="ask-what" tabIndex={0} dir="auto" aria-label="What would be done, whole"><Unseen text={a.text} /></pre>
      {risky && <ul className="ask-dangers" aria-label="Look twice">{a.dangers.map(d => <li key={d.kind + d.why} className="row"><Icon name="warn" /><span><b>Look twice:</b> it {d.why}{d.what && d.what !== a.text.trim() && <>: <code><Unseen text={d.what} /></code></>}</span></li>)}</ul>}
      <dl className="facts small">
        <dt>Asked by</dt><dd><bdi>{shown(a.asked_by)}</bdi></dd>
        {!here && <><dt>In</dt><dd><SessionLink session={a.session} source={a.source} name={a.session_title} /></dd></>}
        <dt>Agent</dt><dd><AgentLink agent={a.agent} /></dd>
        {a.domain && <><dt>Domain</dt><dd>{a.domain}</dd></>}
        {a.cwd && <><dt>In folder</dt><dd className="mono">{a.cwd}</dd></>}
        {a.env.length > 0 && <><dt>Environment</dt><dd className="mono">{a.env.join(' ')}</dd></>}
        <dt>Sandbox</dt><dd>{a.sandbox || 'none: the tool itself'}</dd>
        <dt>Run</dt><dd><Link to="/runs/$run" params={{ run: a.run_id }}>{short(a.run_id).toLowerCase()}</Link></dd>
      </dl>
      {act.error && <Failed error={act.error} />}
      {gone && <p className="soft" role="status">This question is over.</p>}
      {over && !gone && <p className="soft" role="status">Nobody answered in time, so it is not done. If it is still wanted, ask the agent for it again.</p>}
      <div className="row wrap ask-acts">
        {!gone && a.choices.length === 0 && <span className="soft small grow">{a.domain ? `The owner of ${a.domain} decides this.` : 'Somebody else decides this.'}</span>}
        {may('deny') && button('deny', 'Deny', 'danger', deny)}
        {may('deny') && <Button disabled={act.busy || over} aria-expanded={saying} aria-keyshortcuts="e" data-key="e" onClick={() => { say(!saying) }}>Deny and say why</Button>}
        {may('session') && button('session', 'Allow this in this session')}
        {may('once') && button('once', 'Allow once', 'primary')}
      </div>
      {saying && may('deny') && !over && <Why busy={act.busy} cancel={() => { say(false); card.current?.querySelector('button')?.focus() }} deny={why => { void act.run('deny', why) }} />}
      {may('session') && <p className="soft small ask-allows"><em>Allow this in this session</em> allows: {a.allows_s ? <code><Unseen text={a.allows ?? ''} /></code> : <>the tool <code>{shown(a.allows ?? a.tool)}</code></>} in this session{a.allows_s ? ` for ${lasting(a.allows_s)}` : ', until it begins again'}</p>}
    </article>
  )
}

const keys: Record<Decision, string> = { once: 'y', session: 's', deny: 'n' }

// Why takes the reason of a no, which the agent is told.
function Why({ busy, cancel, deny }: { busy: boolean; cancel: () => void; deny: (why: string) => void }) {
  const [why, set] = useState('')
  const field = useRef<HTMLTextAreaElement>(null)
  useEffect(() => { field.current?.focus() }, [])
  const send = () => { if (why.trim()) deny(why.trim()) }
  return (
    <form className="stack-s" onSubmit={e => { e.preventDefault(); send() }}>
      <label className="label">Why not? The agent is told this.
        <textarea ref={field} className="field" rows={2} maxLength={500} value={why} onChange={e => { set(e.target.value) }} onKeyDown={e => {
          if (e.key === 'Escape') { e.preventDefault(); e.stopPropagation(); cancel() }
          if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) { e.preventDefault(); send() }
        }} /></label>
      <div className="row wrap ask-acts"><Button onClick={cancel} disabled={busy}>Back</Button><Button kind="danger" disabled={busy || !why.trim()} busy={busy} type="submit">Deny with this reason</Button></div>
    </form>
  )
}

const arming = 600 // ms

// useArmed turns true when the question has been there for a moment: a click that was meant for what stood here before must
// not allow anything.
function useArmed(): boolean {
  const [armed, set] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => { set(true) }, arming)
    return () => { clearTimeout(timer) }
  }, [])
  return armed
}

// useLeft is how many milliseconds are left, moving each second.
function useLeft(expires: string): number {
  const [now, set] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => { set(Date.now()) }, 1000)
    return () => { clearInterval(timer) }
  }, [])
  return Date.parse(expires) - now
}

// lasting is a length of time in hours or minutes.
const lasting = (s: number): string => s % 3600 === 0 ? `${s / 3600} h` : `${Math.ceil(s / 60)} min`

function remaining(ms: number): string {
  const s = Math.ceil(ms / 1000)
  return s < 60 ? `${s} s` : s < 3600 ? `${Math.ceil(s / 60)} min` : `${Math.ceil(s / 3600)} h`
}
