import { Link } from '@tanstack/react-router'
import { post, segment } from '../api/http'
import type { Undelivered } from '../api/types.gen'
import { useAct, usePages } from '../api/use'
import { Button } from '../ui/button'
import { Failed, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import { toast } from '../ui/toast'
import './needs.css'

const states: Record<string, { label: string; kind: string; text: string }> = {
  dead: { label: 'Given up', kind: 'bad', text: 'It surely did not arrive.' },
  unknown: { label: 'In doubt', kind: 'warn', text: 'It may have arrived. Sent again it carries a mark.' },
  parked: { label: 'Too late', kind: '', text: 'It came too late to be sent unasked. /resume in its room sends it too.' },
}

// UndeliveredAnswers are those that did not arrive: send them after all, or give them up.
export function UndeliveredAnswers({ quiet }: { quiet?: boolean }) {
  const { data, error, reload, more, fetching } = usePages<Undelivered>('/v1/outbound?limit=20')
  if (error) return <Failed error={error} retry={reload} />
  if (!data) return <Skeleton lines={1} />
  return (
    <div className="stack">
      {data.map(l => <AnswerCard key={l.id} answer={l} done={reload} />)}
      {data.length === 0 && !quiet && <p className="soft">Everything arrived.</p>}
      {more && <div className="more"><Button busy={fetching} onClick={more}>Older ones</Button></div>}
    </div>
  )
}

function AnswerCard({ answer: l, done }: { answer: Undelivered; done: () => void }) {
  const act = useAct(async (what: 'retry' | 'drop') => { await post(`/v1/outbound/${segment(l.id)}/${what}`); toast(what === 'retry' ? 'It is on its way again.' : 'It was given up.'); done() })
  const s = states[l.state] ?? { label: l.state, kind: '', text: '' }
  return (
    <article className="card stack" aria-label={`Answer to ${l.title || l.room}`}>
      <div className="row wrap"><span className={`badge ${s.kind}`}>{s.label}</span><strong><bdi>{l.title || l.room}</bdi></strong><span className="soft small"><Ago at={l.created} /> · {l.sent} of {l.parts} sent{l.run_id && <> · <Link to="/runs/$run" params={{ run: l.run_id }}>run</Link></>}</span></div>
      <p className="small soft">{s.text} {l.error}</p>
      <p className="undelivered" dir="auto">{l.text}</p>
      {act.error && <Failed error={act.error} />}
      <div className="row wrap decide"><Button busy={act.busy} onClick={() => { void act.run('drop') }}>Give up</Button><Button kind="primary" busy={act.busy} onClick={() => { void act.run('retry') }}>Send again</Button></div>
    </article>
  )
}
