import { useNavigate } from '@tanstack/react-router'
import { Link } from '@tanstack/react-router'
import { segment } from '../api/http'
import type { RunItem } from '../api/types.gen'
import { usePages } from '../api/use'
import { signed } from '../store/app'
import { useAtom } from '../store/atom'
import { shown } from '../ui/format'
import { Button } from '../ui/button'
import { Page } from '../ui/page'
import { Empty, Failed, Skeleton } from '../ui/states'
import { Table } from '../ui/table'
import { Ago } from '../ui/time'
import { AgentLink, SessionLink, Took } from './parts'
import { Cost, runStates, StateBadge, stateLabel, Tokens } from './state'
import './runs.css'

export { RunPage } from './run'

type Search = { agent?: string; session?: string; state?: string; requester?: string }

// RunsPage lists the runs of everybody, each with its owner.
export function RunsPage({ search }: { search: Search }) {
  const go = useNavigate()
  const query = Object.entries(search).filter(([, v]) => v).map(([k, v]) => `${k}=${segment(v ?? '')}`).join('&')
  const { data, error, reload, more, fetching } = usePages<RunItem>(`/v1/runs?limit=50${query && `&${query}`}`)
  const set = (change: Search) => { void go({ to: '/runs', search: { ...search, ...change }, replace: true }) }
  const narrowed = query !== ''
  return (
    <Page title="Runs" lead="Every turn of every agent, newest first." acts={<Button icon="again" onClick={reload}>Refresh</Button>}>
      <div className="filters">
        <AgentFilter value={search.agent} onChange={agent => { set({ agent }) }} />
        <label className="label">State
          <select className="field" value={search.state ?? ''} onChange={e => { set({ state: e.target.value || undefined }) }}>
            <option value="">Any</option>
            {runStates.map(s => <option key={s} value={s}>{stateLabel(s)}</option>)}
          </select>
        </label>
        {search.session && <Button kind="small" icon="close" onClick={() => { set({ session: undefined }) }}>One chat only</Button>}
        {search.requester && <Button kind="small" icon="close" onClick={() => { set({ requester: undefined }) }}>One person only</Button>}
      </div>
      {error ? <Failed error={error} retry={reload} /> : !data ? <Skeleton lines={8} /> : data.length === 0 && !more
        ? narrowed
          ? <Empty icon="run" title="No run fits" act={<Button onClick={() => { void go({ to: '/runs', search: {} }) }}>Show all runs</Button>}>Nothing ran that is of this agent, state and chat.</Empty>
          : <Empty icon="run" title="Nothing ran yet" act={<Link className="button primary" to="/">Say something</Link>}>Each message that an agent answers is a run: what it was asked, what it did, and what that cost.</Empty>
        : <RunTable rows={data} />}
      {more && <div className="more"><Button busy={fetching} onClick={more}>Older runs</Button></div>}
    </Page>
  )
}

export function RunTable({ rows, caption = 'Runs' }: { rows: RunItem[]; caption?: string }) {
  return (
    <Table caption={caption} rows={rows} id={r => r.id} columns={[
      { head: 'Run', cell: r => <Link className="said truncate" to="/runs/$run" params={{ run: r.id }} title={r.said}><bdi>{shown(r.said || `Run ${r.id.slice(-6)}`)}</bdi></Link> },
      { head: 'State', cell: r => <StateBadge state={r.state} />, nowrap: true },
      { head: 'Agent', cell: r => <AgentLink agent={r.agent} /> },
      { head: 'Chat', cell: r => <SessionLink session={r.session} source={r.source} name={r.session_title} /> },
      { head: 'Asked by', cell: r => <bdi>{shown(r.asked_by)}</bdi> },
      { head: 'Began', cell: r => <Ago at={r.started} />, nowrap: true },
      { head: 'Took', cell: r => <Took from={r.started} to={r.ended} state={r.state} />, end: true, nowrap: true },
      { head: 'Tokens', cell: r => <Tokens usage={r.usage} />, end: true },
      { head: 'Cost', cell: r => <Cost usage={r.usage} />, end: true },
    ]} />
  )
}

export function AgentFilter({ value, onChange }: { value?: string; onChange: (agent: string | undefined) => void }) {
  const s = useAtom(signed)
  const agents = s.state === 'in' ? s.me.agents : []
  const known = !value || agents.some(a => a.id === value)
  return (
    <label className="label">Agent
      <select className="field" value={value ?? ''} onChange={e => { onChange(e.target.value || undefined) }}>
        <option value="">All</option>
        {agents.map(a => <option key={a.id} value={a.id}>{a.name}</option>)}
        {!known && <option value={value}>{value}</option>}
      </select>
    </label>
  )
}
