import { useEffect, useMemo } from 'react'
import { post, segment } from '../api/http'
import type { LogLine, RunDetail, RunMessage, RunMoment, RunStep } from '../api/types.gen'
import { useAct, usePages } from '../api/use'
import { ApprovalCard } from '../approvals/card'
import { approvals } from '../store/approvals'
import { useAtom } from '../store/atom'
import { Given, mainOf, Piece, WholeOutput } from '../chat/call'
import { Unseen } from '../chat/markdown-view'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { lasted, short, shown } from '../ui/format'
import { Icon, type IconName } from '../ui/icon'
import { Page } from '../ui/page'
import { Empty, Failed, Note, Skeleton } from '../ui/states'
import { Tabs } from '../ui/tabs'
import { Ago } from '../ui/time'
import { AgentLink, SessionLink, Took } from './parts'
import { Cost, live, reasonText, spent, StateBadge, stateLabel, Tokens } from './state'
import { useRun } from './use-run'
import './runs.css'

// RunPage is one run: what it was asked, why it was let, what it did when, and what that cost.
export function RunPage({ run }: { run: string }) {
  const { data, error, reload, seen } = useRun(run)
  const stop = useAct(async () => { await post(`/v1/runs/${segment(run)}/stop`); reload() })
  const pause = useAct(async (act: 'pause' | 'resume') => { await post(`/v1/runs/${segment(run)}/${act}`); reload() })
  const asked = useAtom(approvals).filter(a => a.run_id === data?.id)
  const title = `Run ${short(data?.id ?? run).toLowerCase()}`
  if (error && !data) return <Page title={title}><Failed error={error} retry={reload} /></Page>
  if (!data) return <Page title={title}><Skeleton lines={8} /></Page>
  return (
    <Page title={title} lead={<bdi>{shown(data.messages[0]?.text.slice(0, 280) ?? '')}</bdi>} acts={
      <><StateBadge state={data.state} /><Copy text={data.id} label="Copy the run’s id" />
        {data.state === 'paused' ? <Button icon="run" busy={pause.busy} onClick={() => { void pause.run('resume') }}>Go on</Button>
          : live(data.state) && data.state !== 'queued' && <Button busy={pause.busy} onClick={() => { void pause.run('pause') }}>Pause</Button>}
        {live(data.state) && <Button kind="danger" icon="stop" busy={stop.busy} onClick={() => { void stop.run() }}>Stop</Button>}</>}>
      {(stop.error ?? pause.error) && <Failed error={(stop.error ?? pause.error) as Error} />}
      {asked.map(a => <ApprovalCard key={a.id} approval={a} />)}
      {data.reason && data.state !== 'completed' && <Note kind={data.state === 'user_stopped' ? undefined : 'bad'}>{data.state !== 'user_stopped' && data.text ? data.text : reasonText(data.reason)}</Note>}
      {live(data.state) && data.trouble && <Note kind="bad">{data.trouble.sentence.charAt(0).toUpperCase() + data.trouble.sentence.slice(1).replace(/`([^`]*)`/g, '“$1”')}</Note>}
      <RunFacts run={data} />
      <Tabs label="What to look at" tabs={[
        { value: 'timeline', label: 'Timeline', body: <Timeline run={data} /> },
        { value: 'why', label: 'Why', body: <Why messages={data.messages} /> },
        { value: 'log', label: 'Log', body: <Log run={data.id} seen={seen} /> },
      ]} />
    </Page>
  )
}

const deliveries: Record<string, string> = { delivered: 'Delivered', not_delivered: 'Not delivered', unknown: 'Under way, or nobody knows', not_requested: 'Stands in the chat' }

export function RunFacts({ run }: { run: RunDetail }) {
  return (
    <dl className="facts card">
      <dt>Agent</dt><dd><AgentLink agent={run.agent} /></dd>
      <dt>Chat</dt><dd><SessionLink session={run.session} source={run.source} name={run.session_title} /></dd>
      <dt>Asked by</dt><dd><bdi>{shown(run.asked_by)}</bdi></dd>
      <dt>Model</dt><dd>{run.model || <span className="faint">–</span>}</dd>
      <dt>Began</dt><dd><Ago at={run.started} /></dd>
      <dt>Took</dt><dd><Took from={run.started} to={run.ended} state={run.state} />{(run.tries ?? 1) > 1 && <span className="soft"> · begun {run.tries} times, since the gateway stopped in between</span>}</dd>
      {spent(run.usage) && <><dt>Tokens</dt><dd><Tokens usage={run.usage} /> <span className="soft small num">({run.usage.inputTokens} in, {run.usage.outputTokens} out{run.usage.cacheReadTokens > 0 && `, ${run.usage.cacheReadTokens} from cache`})</span></dd>
        <dt>Cost</dt><dd><Cost usage={run.usage} price /></dd></>}
      <dt>Answer</dt><dd>{deliveries[run.delivery] ?? run.delivery}</dd>
      {run.error && <><dt>Cause</dt><dd className="mono">{run.error}</dd></>}
    </dl>
  )
}

const moments: Record<string, { icon: IconName; text: (m: RunMoment) => string }> = {
  received: { icon: 'chat', text: m => `Message from ${m.text || m.name || 'somebody'}` },
  started: { icon: 'run', text: () => 'The run began' },
  model: { icon: 'agent', text: m => `Asked ${m.name || 'the model'}` },
  tool: { icon: 'tool', text: m => m.name ?? 'Tool' },
  trouble: { icon: 'warn', text: m => m.text ?? 'The model failed' },
  ended: { icon: 'check', text: m => `${stateLabel(m.name ?? '')}${m.text && m.text !== m.name ? `: ${reasonText(m.text)}` : ''}` },
}

function Timeline({ run }: { run: RunDetail }) {
  const begin = Date.parse(run.timeline[0]?.time ?? run.started ?? '')
  const span = useMemo(() => Math.max(1, ...run.timeline.map(m => Date.parse(m.time) + (m.type === 'ended' ? 0 : m.duration_ms) - begin)), [run.timeline, begin])
  if (run.timeline.length === 0) return <Empty icon="clock" title="Nothing happened yet">The message waits behind another one in its chat.</Empty>
  return (
    <ol className="moments" aria-label="Timeline">
      {run.timeline.map((m, i) => {
        const step = m.step ? run.steps.find(s => s.n === m.step) : undefined
        const line = <MomentLine m={m} step={step} begin={begin} span={span} />
        return <li key={i}>{step ? <details><summary>{line}</summary><StepBody step={step} run={run.id} /></details> : line}</li>
      })}
      {live(run.state) && <li><div className="moment"><span className="at" /><Icon name="spinner" className="spin" /><span className="soft">Under way</span></div></li>}
    </ol>
  )
}

function MomentLine({ m, step, begin, span }: { m: RunMoment; step?: RunStep; begin: number; span: number }) {
  const what = moments[m.type]
  const bad = step ? step.failed || ['failed', 'refused', 'unknown'].includes(step.state) : m.type === 'trouble' || m.type === 'ended' && (m.name === 'failed' || m.name === 'timeout')
  const at = Date.parse(m.time) - begin
  return (
    <div className="moment">
      <span className="at">+{lasted(at)}</span>
      <Icon name={bad ? 'warn' : what?.icon ?? 'info'} className={bad ? 'bad' : undefined} />
      <span className="what truncate">{shown(what?.text(m) ?? m.type)}{step?.kind === 'tool' && step.args && <span className="soft mono"> <Unseen text={mainOf(parsed(step.args))} /></span>}{step && step.state !== 'done' && <span className={step.state === 'refused' || step.state === 'planned' ? 'badge warn' : 'badge bad'}>{stepStates[step.state] ?? step.state}</span>}</span>
      <span className="soft small num">{m.duration_ms > 0 && lasted(m.duration_ms)}</span>
      {(m.type === 'model' || m.type === 'tool') && span > 100 && <span className="lane" aria-hidden="true"><i className={bad ? 'bad' : m.type} style={{ left: `${(at / span) * 100}%`, width: `${Math.max(0.5, (m.duration_ms / span) * 100)}%` }} /></span>}
    </div>
  )
}

const effects: Record<string, string> = { pure: 'reads only', store: 'changes what Parley keeps', outside: 'acts outside: never repeated unasked' }

function StepBody({ step, run }: { step: RunStep; run: string }) {
  return (
    <div className="moment-body">
      <dl className="facts">
        {step.usage && <><dt>Tokens</dt><dd><Tokens usage={step.usage} /> <span className="soft small num">({step.usage.inputTokens} in, {step.usage.outputTokens} out)</span></dd><dt>Cost</dt><dd><Cost usage={step.usage} /></dd></>}
        {step.kind === 'tool' && <><dt>Decision</dt><dd><Decision step={step} /></dd><dt>Effect</dt><dd>{effects[step.effect ?? ''] ?? step.effect}</dd><dt>State</dt><dd>{stepStates[step.state] ?? step.state}</dd>{step.sandbox && <><dt>Ran in</dt><dd>{step.sandbox}</dd></>}</>}
      </dl>
      {step.args && <Given name={step.tool ?? ''} args={parsed(step.args)} />}
      {step.text && <Piece title={step.kind !== 'tool' ? 'Said' : step.state === 'refused' ? 'Refused' : step.failed ? 'Error' : step.tool === 'exec' ? 'Output' : 'Result'} text={step.text} bad={step.failed || step.state === 'refused'}>
        {step.tool === 'exec' && <WholeOutput run={run} call={step.call_id ?? ''} text={step.text} />}</Piece>}
      {step.cut && <p className="small soft">This is the beginning; the log has all of it.</p>}
      {!step.args && !step.text && <p className="small soft">It said nothing.</p>}
    </div>
  )
}

// stepStates say how far a call came.
export const stepStates: Record<string, string> = { planned: 'not begun', started: 'under way', done: 'done', failed: 'failed', unknown: 'nobody knows how it ended', refused: 'refused: it did not run', cancelled: 'cancelled: it did not run' }

const outcomes: Record<string, string> = { allow: 'allowed', ask: 'a person was asked', deny: 'denied' }

// reasons are why a call did not run although policy would have let it.
const reasons: Record<string, string> = {
  arguments: 'its arguments cannot be meant', 'built-in: repeat': 'the very same call came too often', 'built-in: failing': 'it only failed in this turn', 'built-in: exists': 'there is no such tool',
  interrupted: 'it had begun before the gateway stopped', stopped: 'the run was stopped',
}

// Decision is what policy said of a call: the layer, its rule and why, and behind it what each layer said.
export function Decision({ step }: { step: RunStep }) {
  const p = step.policy
  const late = step.reason && p?.outcome !== 'deny' ? reasons[step.reason] ?? step.reason : '' // decided behind policy
  return (
    <>
      <span className={p?.outcome === 'deny' ? 'bad-text' : undefined}>{p ? outcomes[p.outcome] ?? p.outcome : step.decision}</span>{p?.domain && <> · domain {p.domain}</>}
      {p && (p.layer || p.rule) && <span className="soft"> · layer {p.layer || '–'}, rule <code>{p.rule || '–'}</code></span>}
      {late && <><br /><span className="soft">Then {step.state === 'refused' ? 'refused' : 'decided'}: {late}.</span></>}
      {p?.reason && <><br /><span className="soft">{p.reason}</span></>}
      {p && p.record.length > 0 && (
        <details className="small"><summary className="soft">{p.record.length} {p.record.length === 1 ? 'layer' : 'layers'} judged</summary>
          <ol className="layers">{p.record.map((l, i) => <li key={i}><b>{l.layer}</b> {outcomes[l.outcome] ?? l.outcome}{l.rule && <> · <code>{l.rule}</code></>}{l.reason && <span className="soft"> · {l.reason}</span>}</li>)}</ol>
        </details>
      )}
    </>
  )
}

// parsed are arguments as a model wrote them; what is not JSON, or was cut, stays text.
function parsed(json: string): unknown {
  try { return JSON.parse(json) as unknown } catch { return json }
}

// Why says which gates each message passed and which rule chose the agent.
export function Why({ messages }: { messages: RunMessage[] }) {
  return (
    <div className="stack">
      {messages.map(m => (
        <dl key={m.id} className="facts card">
          <dt>Message</dt><dd dir="auto">{m.text.length > 400 ? `${m.text.slice(0, 400)}…` : m.text}</dd>
          <dt>From</dt><dd><bdi>{shown(m.asked_by)}</bdi> <span className="soft">· by {m.channel || m.source} · <Ago at={m.received} /></span></dd>
          <dt>May speak</dt><dd>{m.decision.allow ? 'Yes' : 'No'} <span className="soft">· rule <code>{m.decision.rule}</code>{m.decision.reason && ` · ${m.decision.reason}`}</span></dd>
          {m.decision.gates.length > 0 && <><dt>Passed</dt><dd>{m.decision.gates.join(', ')}</dd></>}
          <dt>Went to</dt><dd><AgentLink agent={m.route.agent} /> {m.route.fallback
            ? <span className="badge warn" title="No route matched. The default agent answered; nothing assigns this place to it.">fallback</span>
            : <span className="soft">· route <code>{m.route.rule}</code></span>}</dd>
          <dt>State</dt><dd><StateBadge state={m.state} />{m.reason && <span className="soft"> {reasonText(m.reason)}</span>}</dd>
        </dl>
      ))}
    </div>
  )
}

function Log({ run, seen }: { run: string; seen: number }) {
  const { data, error, reload, more, fetching } = usePages<LogLine>(`/v1/runs/${segment(run)}/log?limit=200`, 'offset')
  useEffect(() => { if (seen > 0) reload() }, [seen, reload])
  if (error) return <Failed error={error} retry={reload} />
  if (!data) return <Skeleton lines={6} />
  if (data.length === 0) return <Empty icon="log" title="The log is empty">Lines appear as the run goes on.</Empty>
  return (
    <>
      <ol className="log-lines" aria-label="Log of the run">
        {data.map(l => <li key={l.n}><span className="n">{l.n}</span><span className="soft">{l.name ? `${l.type} ${l.name}` : l.type}</span><span className="text mono" dir="auto"><Unseen text={l.text ?? ''} /></span></li>)}
      </ol>
      {more && <div className="more"><Button busy={fetching} onClick={more}>More lines</Button></div>}
    </>
  )
}
