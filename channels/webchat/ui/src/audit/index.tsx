import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { segment } from '../api/http'
import type { AuditCheck, AuditItem } from '../api/types.gen'
import { useApi, usePages } from '../api/use'
import { Unseen } from '../chat/markdown-view'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { number, shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Page } from '../ui/page'
import { Empty, Failed, Note, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import { kinds, say } from './say'
import './audit.css'

type Search = { kind?: string }

// AuditPage is who allowed what, and what was done on the strength of it, newest first, and whether the chain of the rows
// holds.
export function AuditPage({ search }: { search: Search }) {
  const go = useNavigate()
  const { data, error, reload, more, fetching } = usePages<AuditItem>(`/v1/audit?limit=100&before=${Number.MAX_SAFE_INTEGER}${search.kind ? `&kind=${segment(search.kind)}` : ''}`, 'before')
  const check = useApi<AuditCheck>('/v1/audit/verify')
  return (
    <Page title="Audit" lead="What changed who may do what, and what was done on the strength of it. A row that is changed or left out later is noticed."
      acts={<Button icon="again" onClick={() => { reload(); check.reload() }} busy={check.loading}>Read and check again</Button>}>
      <Chain check={check.data} error={check.error} loading={check.loading} />
      <div className="filters">
        <label className="label">Show
          <select className="field" value={search.kind ?? ''} onChange={e => { void go({ to: '/audit', search: { kind: e.target.value || undefined }, replace: true }) }}>
            <option value="">Everything</option>
            {kinds.map(k => <option key={k.value} value={k.value}>{k.label}</option>)}
          </select>
        </label>
      </div>
      {error ? <Failed error={error} retry={reload} /> : !data ? <Skeleton lines={8} /> : data.length === 0 && !more
        ? <Empty icon="check" title={search.kind ? 'Nothing of this kind happened' : 'Nothing was written yet'} act={search.kind ? <Button onClick={() => { void go({ to: '/audit', search: {} }) }}>Show everything</Button> : undefined}>Approvals, commands, people who are let in, configurations and ways in are written here as they happen.</Empty>
        : <ol className="audit" aria-label="Audit log, newest first">{data.map(r => <Row key={`${r.chain} ${r.n}`} row={r} bad={check.data?.bad?.chain === r.chain && check.data.bad.n === r.n ? check.data.bad.why : undefined} />)}</ol>}
      {more && <div className="more"><Button busy={fetching} onClick={more}>Older rows</Button></div>}
    </Page>
  )
}

// Chain says whether the log is what was written.
function Chain({ check, error, loading }: { check: AuditCheck | undefined; error: Error | undefined; loading: boolean }) {
  if (error) return <Failed error={error} />
  if (!check) return <div className="skeleton audit-chain" role="status" aria-label="Checking the chain" />
  const head = check.heads[check.heads.length - 1]
  if (!check.ok) {
    return <Note kind="bad"><strong>The log is not what was written.</strong> Row {check.bad?.n}{check.heads.length > 1 && <> of chain <code>{check.bad?.chain}</code></>}: {shown(check.bad?.why ?? 'unknown')}. Rows before it are as they were; what stands behind it is not proven.</Note>
  }
  return (
    <div className="note audit-chain" role="status"><Icon name="check" className="good" />
      <div className="grow">{loading ? 'Checking again…' : head ? <>Verified up to row <strong className="num">{number(head.n)}</strong>: nothing was changed or left out.</> : 'There is nothing to verify yet.'}
        {head && <span className="soft small"> Keep its head elsewhere to notice later that something was cut off: <code className="audit-head">{head.n}:{head.hash.slice(0, 12)}…</code></span>}</div>
      {head && <Copy text={`${head.n}:${head.hash}`} label="Copy the head" />}</div>
  )
}

const lineMost = 300 // characters of the line under a sentence

function Row({ row: r, bad }: { row: AuditItem; bad?: string }) {
  const [open, set] = useState(false)
  const s = say(r)
  const line = (s.line ?? '').slice(0, lineMost)
  return (
    <li className={bad ? 'audit-row broken' : 'audit-row'}>
      <button type="button" className="audit-line" aria-expanded={open} onClick={() => { set(!open) }}>
        <Icon name={s.icon} className={s.bad ? 'bad' : undefined} />
        <span className="audit-what"><span className="audit-text">{shown(s.text)}</span>{line && <code className="truncate faint" dir="auto"><Unseen text={line.split('\n', 1)[0] ?? ''} /></code>}</span>
        <span className="audit-who small soft truncate"><bdi>{shown(r.by || 'Parley itself')}</bdi>{r.via && <> · {shown(r.via)}</>}</span>
        <span className="audit-when small soft"><Ago at={r.time} /></span>
        <span className="audit-n small faint num" title={`Row ${r.n}`}>{r.n}</span>
      </button>
      {bad && <p className="audit-bad small"><Icon name="warn" />{shown(bad)}</p>}
      {open && <Details row={r} />}
    </li>
  )
}

function Details({ row: r }: { row: AuditItem }) {
  const what = Object.entries(r.what as Record<string, unknown>)
  return (
    <dl className="facts small audit-all">
      <dt>Kind</dt><dd><code>{shown(r.kind)}</code></dd>
      <dt>At</dt><dd>{new Date(r.time).toLocaleString()}</dd>
      {r.actor && <><dt>By</dt><dd><bdi>{shown(r.by ?? r.actor)}</bdi></dd></>}
      {what.map(([k, v]) => <Fact key={k} name={k} value={v} />)}
      <dt>Row’s hash</dt><dd className="mono">{r.hash}</dd>
    </dl>
  )
}

function Fact({ name, value }: { name: string; value: unknown }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return <><dt>{shown(name)}</dt><dd className="mono audit-value" dir="auto">{name === 'run' ? <Link to="/runs/$run" params={{ run: text }}>{text}</Link> : name === 'session' ? <Link to="/chat/$key" params={{ key: text }}>{text}</Link> : <Unseen text={text} />}</dd></>
}
