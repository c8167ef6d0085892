import { useState } from 'react'
import { useOpen } from './open'
import { segment } from '../api/http'
import type { RunDetail } from '../api/types.gen'
import { useApi } from '../api/use'
import { Decision, stepStates } from '../runs/run'
import { approvals } from '../store/approvals'
import { useAtom } from '../store/atom'
import type { Call } from '../store/rows'
import { lasted, shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Given, Live, mainOf, Piece, refused, shortly, WholeOutput } from './call'
import { Unseen } from './markdown-view'
import { useSeconds } from '../ui/time'
import { Files } from './row-view'

// Steps are tool calls in a row: one line each, folded when there are several and they are over.
export function Steps({ calls, over, run }: { calls: Call[]; over: boolean; run: string }) {
  const many = calls.length > 2
  const [open, set] = useOpen(`steps ${run} ${calls[0]?.id ?? ''}`)
  if (!many) return <div className="steps">{calls.map(c => <Step key={c.id} call={c} run={run} />)}</div>
  const no = calls.filter(c => c.error && refused(c.result ?? '')).length
  const failed = calls.filter(c => c.error).length - no
  const last = calls[calls.length - 1]
  return (
    <div className="steps">
      <button type="button" className="step-line" aria-expanded={open} onClick={() => { set(!open) }}>
        <Icon name={open ? 'down' : 'right'} />
        <span className="step-name">{calls.length} steps</span>
        <span className="truncate grow faint">{over ? shown([...new Set(calls.map(c => c.name))].join(', ')) : last && <Unseen text={`${last.name} ${mainOf(last.args)}`} />}</span>
        {no > 0 && <span className="badge warn">{no} refused</span>}
        {failed > 0 && <span className="badge bad">{failed} failed</span>}
        {over ? <span className="faint num">{timeOf(calls[0], last)}</span> : last && <Running call={calls.find(c => c.waits) ?? last} />}
      </button>
      {(open ? calls : over ? [] : calls.filter(c => c.result === undefined)).map(c => <Step key={c.id} call={c} run={run} />)}
    </div>
  )
}

function timeOf(first: Call | undefined, last: Call | undefined): string {
  return first?.at && last?.ended ? lasted(Date.parse(last.ended) - Date.parse(first.at)) : ''
}

// Running says what a call does: it waits for a person, or runs, and since when. Its clock begins when it runs.
function Running({ call }: { call: Call }) {
  const mine = useAtom(approvals).some(a => a.call_id === call.id && a.choices.length > 0)
  if (call.waits) return <span className="step-state waits"><Icon name="clock" />{mine ? 'waiting for you' : 'waiting for approval'}</span>
  return <Clock key={call.at} call={call} />
}

function Clock({ call }: { call: Call }) {
  const [since] = useState(() => call.since ?? (call.at ? Date.parse(call.at) : Date.now()))
  const s = useSeconds(since)
  return <span className="step-state" role="status"><Icon name="spinner" className="spin" />{s >= 2 ? <span className="num">running {s} s</span> : <span className="sr-only">running</span>}</span>
}

function Step({ call, run }: { call: Call; run: string }) {
  const [open, set] = useOpen(`step ${run} ${call.id}`)
  const over = call.result !== undefined
  const came = over ? shortly(call.name, call.args, call.result ?? '', call.error) : ''
  return (
    <div className={call.error ? 'step bad' : 'step'}>
      <button type="button" className="step-line" aria-expanded={open} onClick={() => { set(!open) }}>
        <Icon name={call.error ? 'warn' : 'tool'} />
        <span className="step-name"><span className="sr-only">Tool </span>{shown(call.name)}</span>
        <code className="truncate grow faint" dir="ltr"><Unseen text={mainOf(call.args)} /></code>
        {over ? <><span className="step-result truncate faint"><Unseen text={came} /></span>{call.at && call.ended && <span className="faint num">{lasted(Date.parse(call.ended) - Date.parse(call.at))}</span>}</> : <Running call={call} />}
        <Icon name={open ? 'up' : 'down'} className="faint" />
      </button>
      {!over && <Live call={call.id} />}
      {open && (
        <div className="step-body">
          <Given name={call.name} args={call.args} />
          {over && <Came call={call} run={run} />}
          <Files parts={call.files} />
          <Facts run={run} call={call.id} over={over} />
        </div>
      )}
    </div>
  )
}

function Came({ call, run }: { call: Call; run: string }) {
  const text = call.result ?? ''
  const title = !call.error ? call.name === 'exec' ? 'Output' : 'Result' : refused(text) ? 'Refused' : 'Error'
  return <Piece title={title} text={text} bad={call.error}>{call.name === 'exec' && <WholeOutput run={run} call={call.id} text={text} />}</Piece>
}

// Facts are why the call was let, and in what it ran: the run knows.
function Facts({ run, call, over }: { run: string; call: string; over: boolean }) {
  const { data } = useApi<RunDetail>(run ? `/v1/runs/${segment(run)}` : null, { again: over })
  const step = data?.steps.find(s => s.call_id === call)
  if (!step) return null
  return <dl className="facts small"><dt>Decision</dt><dd><Decision step={step} /></dd>{step.sandbox && <><dt>Ran in</dt><dd>{step.sandbox}</dd></>}<dt>State</dt><dd>{stepStates[step.state] ?? step.state}</dd></dl>
}
