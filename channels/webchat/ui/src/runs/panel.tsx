import { Link } from '@tanstack/react-router'
import { Granted } from '../approvals/granted'
import { lasted, shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Failed, Note, Skeleton } from '../ui/states'
import { Took } from './parts'
import { Cost, reasonText, spent, StateBadge, Tokens } from './state'
import { useRun } from './use-run'
import './runs.css'

// RunPanel is the run behind an answer, beside the chat: in short, with the way to all of it.
export function RunPanel({ run }: { run: string }) {
  const { data, error, reload } = useRun(run)
  if (error && !data) return <Failed error={error} retry={reload} />
  if (!data) return <Skeleton lines={5} />
  const m = data.messages[0]
  return (
    <div className="stack">
      <div className="row"><StateBadge state={data.state} /><span className="soft small"><Took from={data.started} to={data.ended} state={data.state} /></span></div>
      {data.reason && data.state !== 'completed' && <Note kind={data.state === 'user_stopped' ? undefined : 'bad'}>{reasonText(data.reason)}</Note>}
      <dl className="facts">
        <dt>Model</dt><dd>{data.model || '–'}</dd>
        {spent(data.usage) && <><dt>Tokens</dt><dd><Tokens usage={data.usage} /></dd><dt>Cost</dt><dd><Cost usage={data.usage} price /></dd></>}
        {m && <><dt>Asked by</dt><dd><bdi>{shown(m.asked_by)}</bdi></dd>
          <dt>Route</dt><dd>{m.route.fallback ? 'fallback: no route matched' : <code>{m.route.rule}</code>}</dd></>}
      </dl>
      {data.steps.length > 0 && <ol className="steps-short" aria-label="Steps">
        {data.steps.map(s => (
          <li key={s.n} className="row small"><Icon name={s.kind === 'tool' ? 'tool' : 'agent'} /><span className="grow truncate">{shown(s.tool || s.model || s.kind)}</span>
            {s.state !== 'done' && <span className={s.state === 'refused' || s.state === 'planned' ? 'badge warn' : 'badge bad'}>{s.state === 'planned' ? 'not begun' : s.state}</span>}<span className="soft num">{lasted(s.duration_ms)}</span></li>
        ))}
      </ol>}
      <Granted session={data.session} title={list => <section className="stack-s" aria-label="Allowed in this session"><h3>Allowed in this session</h3>{list}</section>} />
      <Link className="button" to="/runs/$run" params={{ run: data.id }}>Open the run</Link>
    </div>
  )
}
