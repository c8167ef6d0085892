import { Link, useNavigate, useRouterState } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useMemo, useRef } from 'react'
import { segment } from '../api/http'
import type { UsageItem, UsageSum } from '../api/types.gen'
import { useApi } from '../api/use'
import { AgentFilter } from '../runs'
import { allTokens, money, Tokens } from '../runs/state'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { lasted, number, tokens } from '../ui/format'
import { Page } from '../ui/page'
import { Empty, Failed, Skeleton } from '../ui/states'
import { Table } from '../ui/table'
import './usage.css'
import '../runs/runs.css'

const Chart = lazy(async () => ({ default: (await import('./chart')).Chart }))
type Search = { by?: string; days?: string; agent?: string }
const views = [{ by: 'day', label: 'By day' }, { by: 'agent', label: 'By agent' }, { by: 'person', label: 'By person' }, { by: 'model', label: 'By model' }]

const day = (back: number) => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10)

// UsagePage sums what runs cost, by day, agent, person or model.
export function UsagePage({ search }: { search: Search }) {
  const go = useNavigate()
  const by = views.some(v => v.by === search.by) ? search.by as string : 'day'
  const days = ['7', '30', '90', '365'].includes(search.days ?? '') ? Number(search.days) : 30
  const { data, error, reload } = useApi<UsageSum>(`/v1/usage?by=${by}&from=${day(days - 1)}&to=${day(0)}${search.agent ? `&agent=${segment(search.agent)}` : ''}`)
  const set = (change: Search) => { void go({ to: '/usage', search: { ...search, ...change }, replace: true }) }
  const t = data?.total
  const points = useMemo(() => data ? filled(data) : [], [data])
  return (
    <Page title="Usage" lead="What runs cost, in tokens and money. Days are those of UTC." acts={<Button icon="again" onClick={reload}>Refresh</Button>}>
      <div className="filters">
        <label className="label">Time<select className="field" value={String(days)} onChange={e => { set({ days: e.target.value }) }}>
          <option value="7">Last 7 days</option><option value="30">Last 30 days</option><option value="90">Last 90 days</option><option value="365">Last year</option>
        </select></label>
        <AgentFilter value={search.agent} onChange={agent => { set({ agent }) }} />
      </div>
      <nav className="tabs" aria-label="What each line sums">{views.map(v => <Link key={v.by} className="tab" to="/usage" search={{ ...search, by: v.by }} replace aria-current={v.by === by ? 'page' : undefined}>{v.label}</Link>)}</nav>
      {error ? <Failed error={error} retry={reload} /> : !data || !t ? <Skeleton lines={6} /> : t.runs === 0
        ? <Empty icon="usage" title="Nothing was used" act={<Link className="button primary" to="/">Say something</Link>}>No run began in this time{search.agent && ' with this agent'}. Each answer adds its tokens and its cost here.</Empty>
        : (
          <>
            <dl className="sums">
              <div><dt>Runs</dt><dd className="num">{number(t.runs)}</dd></div>
              <div><dt>Failed</dt><dd className="num">{number(t.failed)}</dd></div>
              <div><dt>Tokens</dt><dd><Tokens usage={t.usage} /></dd></div>
              <div><dt>Cost</dt><dd className="num">{money(t)}</dd></div>
              <div><dt>Time in models</dt><dd className="num">{lasted(t.usage.durationMs)}</dd></div>
            </dl>
            {t.unpriced > 0 && <Prices unpriced={t.unpriced} />}
            {by === 'day' && allTokens(t.usage) > 0 && <Suspense fallback={<Skeleton lines={1} height="250px" />}><Chart items={points} /></Suspense>}
            <UsageTable by={by} items={by === 'day' ? [...data.items].reverse() : data.items} />
          </>
        )}
    </Page>
  )
}

// Prices says which runs are in no sum, and how a price is set.
function Prices({ unpriced }: { unpriced: number }) {
  const asked = useRouterState({ select: s => s.location.hash }) === 'prices'
  const box = useRef<HTMLDetailsElement>(null)
  useEffect(() => { if (asked) box.current?.scrollIntoView({ block: 'nearest' }) }, [asked])
  const example = `{"models": [{"model": "llama3.2", "input": 0, "output": 0}]}`
  return (
    <details className="card" id="prices" ref={box} open={asked || undefined}>
      <summary>{number(unpriced)} {unpriced === 1 ? 'run' : 'runs'} with a model whose price is not known {unpriced === 1 ? 'is' : 'are'} not in the sum. Set a price</summary>
      <div className="stack small">
        <p>Write <code>prices.json</code> into the data directory of the gateway, with US dollars per million tokens of each model, by its name at the provider; 0 is free. It is read at the start. What ran before keeps what was known then.</p>
        <div className="row wrap"><pre className="mono">{example}</pre><Copy text={example} label="Copy the example" /></div>
      </div>
    </details>
  )
}

const zero: Omit<UsageItem, 'key'> = { runs: 0, failed: 0, unpriced: 0, knownCostUsd: 0, usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, totalCostUsd: null, durationMs: 0 } }

// filled has a point for every day, also for those on which nothing ran.
export function filled(sum: UsageSum): UsageItem[] {
  const known = new Map(sum.items.map(i => [i.key, i]))
  const out: UsageItem[] = []
  for (let at = Date.parse(`${sum.from}T00:00:00Z`); at <= Date.parse(`${sum.to}T00:00:00Z`); at += 86_400_000) {
    const key = new Date(at).toISOString().slice(0, 10)
    out.push(known.get(key) ?? { key, ...zero })
  }
  return out
}

function UsageTable({ by, items }: { by: string; items: UsageItem[] }) {
  const most = Math.max(1, ...items.map(i => allTokens(i.usage)))
  const head = { day: 'Day', agent: 'Agent', person: 'Person', model: 'Model' }[by] ?? by
  return (
    <Table caption={`Usage by ${by}`} rows={items} id={i => i.key} columns={[
      { head, cell: i => by === 'agent' ? <Link to="/agents/$agent" params={{ agent: i.key }}>{i.name || i.key}</Link> : by === 'person' ? <Link to="/runs" search={{ requester: i.key }} title={i.key}>{i.name || i.key.slice(-6) || 'nobody'}</Link> : i.key || <span className="faint">none</span>, nowrap: true },
      { head: '', cell: i => <span className="usage-bar" aria-hidden="true"><i style={{ width: `${(allTokens(i.usage) / most) * 100}%` }} /></span> },
      { head: 'Runs', cell: i => number(i.runs), end: true },
      { head: 'Failed', cell: i => i.failed ? number(i.failed) : <span className="faint">0</span>, end: true },
      { head: 'In', cell: i => tokens(i.usage.inputTokens), end: true },
      { head: 'Out', cell: i => tokens(i.usage.outputTokens), end: true },
      { head: 'From cache', cell: i => tokens(i.usage.cacheReadTokens), end: true },
      { head: 'Cost', cell: i => money(i), end: true, nowrap: true },
    ]} />
  )
}
