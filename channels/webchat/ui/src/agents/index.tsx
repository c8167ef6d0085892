import { Link } from '@tanstack/react-router'
import { segment } from '../api/http'
import type { Agent, Route, RunItem, Session, Status, UsageSum } from '../api/types.gen'
import type { List } from '../api/types'
import { useApi } from '../api/use'
import { RunTable } from '../runs'
import { money, Tokens } from '../runs/state'
import { SessionTable } from '../sessions'
import { Icon } from '../ui/icon'
import { Page, Section } from '../ui/page'
import { Empty, Failed, Note, Skeleton } from '../ui/states'
import { Table } from '../ui/table'
import { ModelList } from './models'
import { ModelState } from './state'
import '../needs/needs.css'

export { ModelState } from './state'

// AgentsPage lists the agents with the models they ask and the places that lead to them.
export function AgentsPage() {
  const agents = useApi<List<Agent>>('/v1/agents')
  const status = useApi<Status>('/v1/status', { every: 10_000 })
  const routes = useApi<List<Route>>('/v1/routes')
  const error = agents.error ?? status.error ?? routes.error
  return (
    <Page title="Agents" lead="Who answers, and which models each agent asks.">
      {error && <Failed error={error} retry={() => { agents.reload(); status.reload(); routes.reload() }} />}
      {!agents.data ? !error && <Skeleton lines={2} height="9rem" /> : (
        <div className="cards">{agents.data.items.map(a => (
          <article key={a.id} className="card stack">
            <h2 className="row"><Icon name="agent" /><Link to="/agents/$agent" params={{ agent: a.id }}>{a.name}</Link>{a.default && <span className="badge" title="Answers where no route matches">default</span>}</h2>
            <Models names={a.models} status={status.data} />
            <p className="small soft">{reach(a, routes.data?.items)}</p>
          </article>
        ))}</div>
      )}
      <Section title="Models" acts={<Link className="button small" to="/models/new"><Icon name="plus" />Add a model</Link>}><ModelList status={status.data} /></Section>
      <Section title="Routes"><Routes routes={routes.data?.items} /></Section>
    </Page>
  )
}

// reach says in one sentence where an agent answers. The fallback is not an assignment.
function reach(a: Agent, routes: Route[] | undefined): string {
  if (!routes) return ' '
  const mine = routes.filter(r => r.agent === a.id && !r.fallback).length
  const assigned = mine === 0 ? 'No route leads to it' : mine === 1 ? 'One route leads to it' : `${mine} routes lead to it`
  return a.default ? `${assigned}. As the fallback it answers wherever no route matches.` : `${assigned}.`
}

function Models({ names, status }: { names: string[]; status: Status | undefined }) {
  return (
    <ol className="models" aria-label="Models, in the order in which they are asked">
      {names.map((name, i) => <li key={name} className="row small wrap"><span className="soft">{i === 0 ? 'asks' : 'falls back to'}</span> <strong>{name}</strong> <ModelState model={status?.models.find(m => m.name === name)} /></li>)}
    </ol>
  )
}

// matchText says what a rule wants, in words.
function matchText(r: Route): string {
  if (r.fallback) return 'everything else'
  const m = r.match
  return [m.channel && `channel ${m.channel}`, m.type && `any ${m.type}`, m.team && `team ${m.team}`, m.server && `server ${m.server}`, m.roles?.length && `role ${m.roles.join(' or ')}`,
    m.kind && `${m.kind}s`, m.peer && `peer ${m.peer}`, m.thread && `thread ${m.thread}`].filter(Boolean).join(', ')
}

function Routes({ routes, of }: { routes: Route[] | undefined; of?: string }) {
  if (!routes) return <Skeleton lines={3} />
  const rows = of ? routes.filter(r => r.agent === of || r.fanout?.includes(of)) : routes
  return (
    <>
      {!of && <p className="soft">The first rule that matches a message decides. The last line is not a rule: it says who answers when none matches.</p>}
      <Table caption="Routes" rows={rows} id={r => String(r.precedence)} columns={[
        { head: 'Rule', cell: r => r.fallback ? <span className="badge warn" title="The default agent, where no route matches. Nothing is assigned to it here.">fallback</span> : <code>{r.rule}</code> },
        { head: 'Asked', cell: r => `${r.precedence}.`, end: true },
        { head: 'Matches', cell: r => matchText(r) },
        { head: 'Agent', cell: r => <><Link to="/agents/$agent" params={{ agent: r.agent }}>{r.agent}</Link>{r.fanout && r.fanout.length > 0 && <span className="soft small"> and copies to {r.fanout.join(', ')}</span>}</> },
        { head: 'Session', cell: r => r.session || <span className="faint">the room’s own</span> },
        { head: 'In the file', cell: r => r.n ? `routes[${r.n - 1}]` : <span className="faint">–</span>, nowrap: true },
      ]} />
    </>
  )
}

// AgentPage is one agent: its models, the routes that lead to it, and what it did lately.
export function AgentPage({ agent }: { agent: string }) {
  const agents = useApi<List<Agent>>('/v1/agents')
  const status = useApi<Status>('/v1/status', { every: 10_000 })
  const routes = useApi<List<Route>>('/v1/routes')
  const id = segment(agent)
  const sessions = useApi<List<Session>>(`/v1/sessions?limit=5&agent=${id}`)
  const runs = useApi<List<RunItem>>(`/v1/runs?limit=5&agent=${id}`)
  const spent = useApi<UsageSum>(`/v1/usage?agent=${id}`)
  const a = agents.data?.items.find(x => x.id === agent)
  if (agents.error && !agents.data) return <Page title={agent}><Failed error={agents.error} retry={agents.reload} /></Page>
  if (!agents.data) return <Page title={agent}><Skeleton lines={6} /></Page>
  return (
    <Page title={a?.name ?? agent} lead={<span className="mono small">{agent}</span>} acts={<Link className="button primary" to="/" search={{ agent }}>New session</Link>}>
      {!a && <Note kind="warn">No agent of this id is configured now. What it said before is still here.</Note>}
      {a && <Section title="Models"><div className="card"><Models names={a.models} status={status.data} /></div></Section>}
      <Section title="Routes that lead here">
        {routes.data && !routes.data.items.some(r => r.agent === agent || r.fanout?.includes(agent))
          ? <Note>No route leads to this agent, and it is not the default. It answers in chats that people open for it here, or by <code>@{agent}</code> in a room.</Note>
          : <Routes routes={routes.data?.items} of={agent} />}
      </Section>
      {spent.data && spent.data.total.runs > 0 && (
        <Section title="Last 30 days" acts={<Link to="/usage" search={{ agent }}>Usage</Link>}>
          <dl className="facts card"><dt>Runs</dt><dd className="num">{spent.data.total.runs}{spent.data.total.failed > 0 && <span className="soft"> · {spent.data.total.failed} failed</span>}</dd>
            <dt>Tokens</dt><dd><Tokens usage={spent.data.total.usage} /></dd><dt>Cost</dt><dd>{money(spent.data.total)}</dd></dl>
        </Section>
      )}
      <Section title="Chats" acts={<Link to="/sessions" search={{ agent }}>All its chats</Link>}>
        {sessions.error ? <Failed error={sessions.error} retry={sessions.reload} /> : !sessions.data ? <Skeleton /> : sessions.data.items.length === 0
          ? <Empty title="No chat yet" act={<Link className="button" to="/" search={{ agent }}>Say something</Link>} /> : <SessionTable caption="Its newest chats" rows={sessions.data.items} />}
      </Section>
      <Section title="Runs" acts={<Link to="/runs" search={{ agent }}>All its runs</Link>}>
        {runs.error ? <Failed error={runs.error} retry={runs.reload} /> : !runs.data ? <Skeleton /> : runs.data.items.length === 0 ? <p className="soft">It has not run yet.</p> : <RunTable caption="Its newest runs" rows={runs.data.items} />}
      </Section>
    </Page>
  )
}
