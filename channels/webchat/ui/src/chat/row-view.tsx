import { memo, useState } from 'react'
import type { Part, Run } from '../api/types'
import { signed } from '../store/app'
import { useAtom } from '../store/atom'
import type { Row } from '../store/rows'
import type { Sent } from '../store/outbox'
import { textOf } from '../store/transcript'
import { Button, IconButton } from '../ui/button'
import { Copy } from '../ui/copy'
import { bytes, cost, exact, lasted, shown, tokens } from '../ui/format'
import { Icon } from '../ui/icon'
import { useNow, useSeconds } from '../ui/time'
import { Failed } from './failing'
import { fileURL } from './files'
import { Markdown, Unseen } from './markdown-view'
import { reasonText } from '../runs/state'
import { useRunOf } from './runs'
import { useOpen } from './open'
import { Steps } from './steps'

// What a row may do. Undefined: not here (an old generation is only read).
export type Acts = {
  names: boolean // say who wrote: others do too
  edit?: (row: Row & { kind: 'user' }) => void
  again?: (asked: number) => void
  failed?: string // the session in which a run that a model failed can be tried again
  stop?: () => void
  showRun: (run: string) => void
  branches: (sequence: number) => { at: number; of: number; go: (n: number) => void } | undefined
}

export const RowView = memo(function RowView({ row, acts, name, last = false }: { row: Row; acts: Acts; name: string; last?: boolean }) {
  switch (row.kind) {
    case 'day': return <div className="day" role="separator"><span>{dayName(row.at)}</span></div>
    case 'user': return <User row={row} acts={acts} />
    case 'answer': return <Answer row={row} acts={acts} name={name} />
    case 'steps': return <Steps calls={row.calls} over={row.over} run={row.run} />
    case 'command': return <Command row={row} />
    case 'mark': return <div className="mark" role="note">{row.by !== undefined && <By id={row.by} />}<Unseen text={row.text} /></div>
    case 'error': return <Trouble row={row} acts={acts} last={last} />
    case 'end': return <End row={row} acts={acts} />
  }
})

const clock = (at: string) => new Date(at).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })

function dayName(at: string): string {
  const d = new Date(at), now = new Date()
  if (d.toDateString() === now.toDateString()) return 'Today'
  return d.toLocaleDateString(undefined, { weekday: 'long', day: 'numeric', month: 'long', ...(d.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' }) })
}

function User({ row, acts }: { row: Row & { kind: 'user' }; acts: Acts }) {
  const text = textOf(row.item)
  const files = (row.item.parts ?? []).filter(p => p.blob || p.ref)
  return (
    <article className="msg user" aria-label={`${(acts.names && row.item.name) || 'You'}, ${clock(row.at)}`}>
      {row.item.name && acts.names && <div className="msg-name small faint"><bdi>{shown(row.item.name)}</bdi></div>}
      <Quoted parts={row.item.quoted} />
      <Files parts={files} />
      {text && <Bubble text={text} id={row.id} />}
      <div className="msg-foot">
        <span className="msg-acts"><Copy text={text} label="Copy message" />{acts.edit && <IconButton icon="edit" label="Edit message" onClick={() => { acts.edit?.(row) }} />}</span>
        <Branches b={acts.branches(row.sequence)} />
        <time className="faint small num" dateTime={row.at} title={exact(new Date(row.at))}>{clock(row.at)}</time>
      </div>
    </article>
  )
}

const folded = 3000 // characters of a message that are shown until more is asked for

function Bubble({ text, id }: { text: string; id: string }) {
  const [all, set] = useOpen(`message ${id}`)
  const long = text.length > folded * 1.2
  return (
    <div className="bubble" dir="auto">
      {long && !all ? `${text.slice(0, folded)}…` : text}
      {long && <button type="button" className="button small quiet bubble-more" aria-expanded={all} onClick={() => { set(!all) }}>{all ? 'Show less' : `Show all ${text.length.toLocaleString()} characters`}</button>}
    </div>
  )
}

function Branches({ b }: { b: ReturnType<Acts['branches']> }) {
  if (!b) return null
  return (
    <span className="branches num" role="group" aria-label={`Version ${b.at} of ${b.of}`}>
      <IconButton icon="left" label="Version before" disabled={b.at <= 1} onClick={() => { b.go(b.at - 1) }} />
      <span className="small">{b.at}/{b.of}</span>
      <IconButton icon="right" label="Version after" disabled={b.at >= b.of} onClick={() => { b.go(b.at + 1) }} />
    </span>
  )
}

function Quoted({ parts }: { parts: Part[] | undefined }) {
  if (!parts?.length) return null
  return <blockquote className="quoted" aria-label="Said before">{parts.map((p, i) => <p key={i} dir="auto">{p.name && <b><bdi>{shown(p.name)}</bdi>: </b>}{p.text}</p>)}</blockquote>
}

// pictures are the types that the gateway lets a browser draw (gateway/api, harmless): nothing in them runs. An SVG is a
// document with scripts, so it is a file to save like any other.
const pictures = /^image\/(?:png|jpeg|gif|webp|avif|bmp)$/

export function Files({ parts }: { parts: Part[] }) {
  if (!parts.length) return null
  return (
    <div className="files">
      {parts.map((p, i) => {
        const ref = p.ref ?? p.blob ?? ''
        const name = shown((p.name || p.mime || 'file').slice(0, 200))
        return pictures.test(p.mime ?? '')
          ? <a key={i} className="picture" href={fileURL(ref, p.name)} target="_blank" rel="noopener noreferrer"><img src={fileURL(ref)} alt={p.name ? `Picture ${name}` : 'Picture'} loading="lazy" /></a>
          : <a key={i} className="chip file" href={fileURL(ref, p.name)} download={p.name || true} rel="noopener" title={`Save ${name}`}><Icon name="file" /><bdi className="truncate">{name}</bdi><span className="faint small num">{[p.mime, p.size ? bytes(p.size) : ''].filter(Boolean).join(' · ')}</span><span className="sr-only">, save the file</span></a>
      })}
    </div>
  )
}

function Answer({ row, acts, name }: { row: Row & { kind: 'answer' }; acts: Acts; name: string }) {
  const [came] = useState(row.growing) // before somebody's eyes: it is read out when it is whole
  return (
    <article className="msg answer" aria-label={`${name}${row.at ? `, ${clock(row.at)}` : ', is answering'}`} aria-live={came ? 'polite' : undefined} aria-busy={row.growing || undefined}>
      <Markdown text={row.text} growing={row.growing} />
      <Files parts={row.files} />
      {row.partial && <p className="cut small"><Icon name="stop" />{row.reason && row.reason !== 'stopped' ? `Cut off: ${reasonText(row.reason)}` : 'Stopped here'}</p>}
      {row.foot && <Foot row={row} acts={acts} />}
    </article>
  )
}

const spent = (r: Run): boolean => r.usage.inputTokens + r.usage.outputTokens + r.usage.cacheReadTokens > 0

const states: Record<string, string> = { failed: 'Failed', timeout: 'Took too long', user_stopped: 'Stopped' }

function Foot({ row, acts }: { row: Row & { kind: 'answer' }; acts: Acts }) {
  const foot = row.foot
  const run = useRunOf(foot?.run)
  if (!foot) return null
  return (
    <div className="msg-foot">
      <span className="msg-acts">
        <Copy text={row.text} label="Copy answer" />
        {acts.again && row.asked !== undefined && <IconButton icon="again" label="Regenerate answer" onClick={() => { acts.again?.(row.asked ?? 0) }} />}
        <IconButton icon="run" label="Show the run" onClick={() => { acts.showRun(foot.run) }} />
      </span>
      <span className="foot-facts small faint num">
        {states[foot.state] && <span className="badge warn">{states[foot.state]}{foot.reason && foot.reason !== 'stopped' ? `: ${reasonText(foot.reason)}` : ''}</span>}
        <time dateTime={row.at} title={exact(new Date(row.at))}>{clock(row.at)}</time>
        {foot.started && <span>{lasted(Date.parse(foot.ended) - Date.parse(foot.started))}</span>}
        {run?.model && <span>{run.model}</span>}
        {run && spent(run) && <span title={`Tokens: ${run.usage.inputTokens} in, ${run.usage.outputTokens} out, ${run.usage.cacheReadTokens} from the cache`}>{tokens(run.usage.inputTokens + run.usage.cacheReadTokens + run.usage.cacheWriteTokens)} → {tokens(run.usage.outputTokens)} tokens</span>}
        {run && run.usage.totalCostUsd !== null && <span title="Cost of the run">{cost(run.usage.totalCostUsd)}</span>}
      </span>
    </div>
  )
}

function Command({ row }: { row: Row & { kind: 'command' } }) {
  return (
    <article className="msg command" aria-label={`Command ${row.command}`}>
      <div className="command-line"><Icon name="terminal" /><code dir="auto">{row.command}</code></div>
      {row.text && <div className="command-reply"><Markdown text={row.text} growing={false} /></div>}
    </article>
  )
}

function Trouble({ row, acts, last }: { row: Row & { kind: 'error' }; acts: Acts; last: boolean }) {
  if (last && acts.failed && row.foot && /^(model_|timeout$)/.test(row.code)) return <Failed row={row} acts={acts} session={acts.failed} />
  return (
    <div className="note bad" role="note">
      <Icon name="warn" /><div className="grow" dir="auto">{row.text || `Something went wrong (${row.code}).`}</div>
      {acts.again && row.foot && row.asked !== undefined && <Button kind="small" icon="again" onClick={() => { acts.again?.(row.asked ?? 0) }}>Try again</Button>}
      {row.run && <Button kind="small" onClick={() => { acts.showRun(row.run) }}>Show the run</Button>}
    </div>
  )
}

function End({ row, acts }: { row: Row & { kind: 'end' }; acts: Acts }) {
  const { state, reason } = row.foot
  const why = reason && reason !== 'stopped' ? ` ${reasonText(reason).replace(/\.?$/, '.')}` : ''
  const text = state === 'user_stopped' ? `Stopped before an answer.${why}` : state === 'completed' ? 'There was nothing to say.' : `${states[state] ?? state}.${why}`
  return (
    <div className={state === 'failed' || state === 'timeout' ? 'note bad' : 'note'} role="note">
      <Icon name={state === 'user_stopped' ? 'stop' : 'info'} /><div className="grow">{text}</div>
      {acts.again && row.asked !== undefined && state !== 'completed' && <Button kind="small" icon="again" onClick={() => { acts.again?.(row.asked ?? 0) }}>Try again</Button>}
      <Button kind="small" onClick={() => { acts.showRun(row.run) }}>Show the run</Button>
    </div>
  )
}

// Outgoing is a message that is on its way: sending, stored, refused.
export function Outgoing({ sent, online, behind, onRetry, onDrop }: { sent: Sent; online: boolean; behind: boolean; onRetry: () => void; onDrop: () => void }) {
  const now = useNow()
  const said = sent.state === 'sending' ? (online ? (now - sent.at > 4000 ? 'Still sending…' : 'Sending…') : 'Waits until Parley is back') : sent.state === 'stored' ? (behind ? 'Stored, waits for its turn' : 'Stored') : sent.problem ?? ''
  return (
    <article className={`msg user ${sent.state}`} aria-label="You, on its way">
      {sent.files.length > 0 && <Files parts={sent.files.map(f => ({ type: 'file_ref', ref: f.ref, name: f.name, mime: f.mime }))} />}
      {sent.text && <Bubble text={sent.text} id={sent.id} />}
      <div className="msg-foot" role="status">
        <span className={sent.state === 'refused' ? 'small state bad' : 'small faint state'}>
          <Icon name={sent.state === 'sending' ? (online ? 'clock' : 'offline') : sent.state === 'stored' ? 'check' : 'warn'} />{said}
        </span>
        {sent.state === 'refused' && <Button kind="quiet small" onClick={onRetry}>Send again</Button>}
        {(sent.state === 'refused' || sent.state === 'over' || (sent.state === 'sending' && !online)) && <Button kind="quiet small" onClick={onDrop}>Remove</Button>}
      </div>
    </article>
  )
}

// By is who decided: the person who looks is told so.
function By({ id }: { id: string }) {
  const who = useAtom(signed)
  return <>{who.state === 'in' && id === who.me.person.id ? 'You' : shown(id) || 'Its system'} </>
}

// Waiting says why nothing is to be seen yet. After ten seconds it leads to the run.
export function Waiting({ text, since, run, acts }: { text: string; since: number; run: string; acts: Acts }) {
  const [began] = useState(since)
  const seconds = useSeconds(began)
  return (
    <div className="waiting" role="status">
      <span className="pulse" aria-hidden="true" /><span dir="auto">{text}</span>
      {seconds >= 3 && <span className="num faint" aria-hidden="true">· {lasted(seconds * 1000).replace('.0', '')}</span>}
      {seconds >= 10 && run && <Button kind="quiet small" onClick={() => { acts.showRun(run) }}>Show the run</Button>}
    </div>
  )
}
