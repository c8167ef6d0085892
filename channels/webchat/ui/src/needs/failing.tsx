import { Link } from '@tanstack/react-router'
import type { Failing } from '../api/types.gen'
import { Cause, Code, Remedies } from '../chat/failing'
import { useAtom } from '../store/atom'
import { sessions } from '../store/sessions'
import { shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Ago } from '../ui/time'
import './needs.css'

// FailingRuns are one's own runs that a model fails, or has failed, with what can be done about each.
export function FailingRuns({ list, done }: { list: readonly Failing[]; done: () => void }) {
  const known = useAtom(sessions).items
  return <div className="cards">{list.map(f => <Card key={f.run_id} failing={f} name={known.find(s => s.key === f.session)?.name ?? ''} done={done} />)}</div>
}

function Card({ failing: f, name, done }: { failing: Failing; name: string; done: () => void }) {
  const over = f.state !== 'running'
  return (
    <article className="card stack" aria-label={`Failed: ${shown(f.said)}`}>
      <div className="row wrap"><span className="badge bad">{over ? 'Failed' : 'Failing'}</span><Link to="/chat/$key" params={{ key: f.session }}><bdi>{shown(name || f.said || 'Chat')}</bdi></Link><span className="soft small"><Ago at={f.ended ?? f.started} /></span></div>
      {name && !f.said.startsWith(name.slice(0, 20)) && <p className="soft small truncate"><bdi>{shown(f.said)}</bdi></p>}
      <div className="failing-cause"><Icon name="warn" className="bad" /><div className="grow"><Cause trouble={f.trouble} /><p className="small soft num"><Code trouble={f.trouble} />{!over && ' · it is tried again'}</p></div></div>
      <div className="row wrap decide"><Remedies run={f.run_id} session={f.session} over={over} done={done} /><Link className="button small" to="/runs/$run" params={{ run: f.run_id }}>Show the run</Link></div>
    </article>
  )
}
