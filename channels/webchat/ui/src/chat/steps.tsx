import { useState } from 'react'
import { segment } from '../api/http'
import type { RunDetail } from '../api/types.gen'
import { useApi } from '../api/use'
import { Decision } from '../runs/run'
import type { Call } from '../store/rows'
import { Copy } from '../ui/copy'
import { lasted } from '../ui/format'
import { Icon } from '../ui/icon'
import { Unseen } from './markdown-view'
import { Files, useSeconds } from './row-view'

// Steps are tool calls in a row: one line each, folded when there are several and they are over.
export function Steps({ calls, over, run }: { calls: Call[]; over: boolean; run: string }) {
  const many = calls.length > 2
  const [open, set] = useState(false)
  if (!many) return <div className="steps">{calls.map(c => <Step key={c.id} call={c} run={run} />)}</div>
  const failed = calls.filter(c => c.error).length
  const last = calls[calls.length - 1]
  return (
    <div className="steps">
      <button type="button" className="step-line" aria-expanded={open} onClick={() => { set(!open) }}>
        <Icon name={open ? 'down' : 'right'} />
        <span className="step-name">{calls.length} steps</span>
        <span className="truncate grow faint">{over ? [...new Set(calls.map(c => c.name))].join(', ') : last && <Unseen text={`${last.name} ${mainOf(last.args)}`} />}</span>
        {failed > 0 && <span className="badge bad">{failed} failed</span>}
        {over ? <span className="faint num">{timeOf(calls[0], last)}</span> : last && <Running call={last} />}
      </button>
      {(open ? calls : over ? [] : calls.filter(c => c.result === undefined)).map(c => <Step key={c.id} call={c} run={run} />)}
    </div>
  )
}

function timeOf(first: Call | undefined, last: Call | undefined): string {
  return first?.at && last?.ended ? lasted(Date.parse(last.ended) - Date.parse(first.at)) : ''
}

// mainOf is the argument that says most, on one line.
export function mainOf(args: unknown): string {
  if (typeof args === 'string') return args
  if (typeof args !== 'object' || args === null) return ''
  const a = args as Record<string, unknown>
  for (const name of ['command', 'cmd', 'path', 'file', 'url', 'query', 'q', 'pattern', 'name', 'text', 'prompt']) {
    if (typeof a[name] === 'string') return a[name].split('\n', 1)[0] ?? ''
  }
  const first = Object.values(a).find(v => typeof v === 'string' || typeof v === 'number')
  return first === undefined ? '' : String(first).split('\n', 1)[0] ?? ''
}

// shortly is a result in a few words.
function shortly(c: Call): string {
  const text = (c.result ?? '').trim()
  if (!text) return c.error ? 'failed' : 'done'
  const lines = text.split('\n')
  const first = (lines[0] ?? '').slice(0, 40)
  return lines.length > 1 ? `${lines.length} lines` : first.length < text.length ? `${first}…` : first
}

function Running({ call }: { call: Call }) {
  const [since] = useState(() => call.since ?? (call.at ? Date.parse(call.at) : Date.now()))
  const s = useSeconds(since)
  return <span className="step-state" role="status"><Icon name="spinner" className="spin" />{s >= 2 ? <span className="num">running {s} s</span> : <span className="sr-only">running</span>}</span>
}

const capped = 4000

function Step({ call, run }: { call: Call; run: string }) {
  const [open, set] = useState(false)
  const over = call.result !== undefined
  const main = mainOf(call.args)
  return (
    <div className={call.error ? 'step bad' : 'step'}>
      <button type="button" className="step-line" aria-expanded={open} onClick={() => { set(!open) }}>
        <Icon name={call.error ? 'warn' : 'tool'} />
        <span className="step-name"><span className="sr-only">Tool </span>{call.name}</span>
        <code className="truncate grow faint" dir="ltr"><Unseen text={main} /></code>
        {over ? <><span className="step-result truncate faint">{shortly(call)}</span>{call.at && call.ended && <span className="faint num">{lasted(Date.parse(call.ended) - Date.parse(call.at))}</span>}</> : <Running call={call} />}
        <Icon name={open ? 'up' : 'down'} className="faint" />
      </button>
      {open && (
        <div className="step-body">
          <Piece title="Arguments" text={typeof call.args === 'string' ? call.args : call.args === undefined ? '' : JSON.stringify(call.args, null, 2)} />
          {over && <Piece title={call.error ? 'Error' : 'Result'} text={call.result ?? ''} />}
          <Files parts={call.files} />
          <Facts run={run} call={call.id} over={over} />
        </div>
      )}
    </div>
  )
}

// Facts are why the call was let, and in what it ran: the run knows.
function Facts({ run, call, over }: { run: string; call: string; over: boolean }) {
  const { data } = useApi<RunDetail>(run ? `/v1/runs/${segment(run)}` : null, { again: over })
  const step = data?.steps.find(s => s.call_id === call)
  if (!step) return null
  return <dl className="facts small"><dt>Decision</dt><dd><Decision step={step} /></dd>{step.sandbox && <><dt>Ran in</dt><dd>{step.sandbox}</dd></>}<dt>State</dt><dd>{step.state}</dd></dl>
}

function Piece({ title, text }: { title: string; text: string }) {
  const [all, set] = useState(false)
  if (!text) return <p className="small faint">{title}: none</p>
  return (
    <section className="piece" aria-label={title}>
      <div className="row"><h4 className="grow">{title}</h4><Copy text={text} label={`Copy ${title.toLowerCase()}`} /></div>
      <pre tabIndex={0} aria-label={title} dir="auto"><Unseen text={all ? text : text.slice(0, capped)} /></pre>
      {text.length > capped && <button type="button" className="button small quiet" onClick={() => { set(!all) }}>{all ? 'Show less' : `Show all ${text.length.toLocaleString()} characters`}</button>}
    </section>
  )
}
