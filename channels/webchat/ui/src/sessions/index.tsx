import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { segment } from '../api/http'
import type { Session } from '../api/types.gen'
import { usePages } from '../api/use'
import { AgentFilter } from '../runs'
import { AgentLink, PersonName } from '../runs/parts'
import { Cost, Tokens } from '../runs/state'
import { shown } from '../ui/format'
import { Button } from '../ui/button'
import { Icon, networkIcon } from '../ui/icon'
import { Page } from '../ui/page'
import { Empty, Failed, Skeleton } from '../ui/states'
import { Table } from '../ui/table'
import { Ago } from '../ui/time'
import '../runs/runs.css'

type Search = { q?: string; agent?: string }

// useSoon is a value when it has not changed for a moment: what is typed is not asked for letter by letter.
function useSoon(value: string, ms = 250): string {
  const [soon, set] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => { set(value) }, ms)
    return () => { clearTimeout(timer) }
  }, [value, ms])
  return soon
}

// SessionsPage is every session of every channel and agent, for those who look after them.
export function SessionsPage({ search }: { search: Search }) {
  const go = useNavigate()
  const [typed, type] = useState(search.q ?? '')
  const q = useSoon(typed.trim())
  useEffect(() => { if (q !== (search.q ?? '')) void go({ to: '/sessions', search: { ...search, q: q || undefined }, replace: true }) }, [q, search, go])
  const { data, error, reload, more, fetching } = usePages<Session>(`/v1/sessions?limit=50${search.agent ? `&agent=${segment(search.agent)}` : ''}${q ? `&q=${segment(q)}` : ''}`)
  return (
    <Page title="All chats" lead="Those of every channel and agent, the last used first." acts={<Button icon="again" onClick={reload}>Refresh</Button>}>
      <div className="filters">
        <label className="label search">Search titles and what was said<input className="field" type="search" value={typed} onChange={e => { type(e.target.value) }} /></label>
        <AgentFilter value={search.agent} onChange={agent => { void go({ to: '/sessions', search: { ...search, agent }, replace: true }) }} />
      </div>
      {error ? <Failed error={error} retry={reload} /> : !data ? <Skeleton lines={8} /> : data.length === 0
        ? q || search.agent
          ? <Empty icon="search" title="No chat fits" act={<Button onClick={() => { type(''); void go({ to: '/sessions', search: {} }) }}>Show all chats</Button>}>Neither a title nor anything that was said matches.</Empty>
          : <Empty icon="chat" title="No chat yet" act={<Link className="button primary" to="/">Begin one</Link>}>A chat begins with the first message, here or on any channel that Parley is connected to.</Empty>
        : <SessionTable rows={data} />}
      {more && <div className="more"><Button busy={fetching} onClick={more}>Older chats</Button></div>}
    </Page>
  )
}

export function SessionTable({ rows, caption = 'Chats' }: { rows: Session[]; caption?: string }) {
  return (
    <Table caption={caption} rows={rows} id={s => s.session_id} columns={[
      { head: 'Chat', cell: s => (
        <Link to="/chat/$key" params={{ key: s.key }} title={s.key} className="row key-link"><Icon name={networkIcon(s.network ?? 'webchat')} /><bdi className="truncate">{shown(s.name)}</bdi></Link>
      ) },
      { head: 'Agent', cell: s => <AgentLink agent={s.agent} /> },
      { head: 'Where', cell: s => s.local ? 'WebChat' : <span>{s.channel || s.network} <span className="soft">{s.kind}{s.thread && ', thread'}</span></span> },
      { head: 'Person', cell: s => s.person ? <PersonName id={s.person} /> : <span className="soft">{s.local ? 'owners' : 'several'}</span> },
      { head: 'Now', cell: s => s.state === 'waiting' || s.state === 'paused' ? <span className="badge warn">{s.state === 'waiting' ? 'Waiting for you' : 'Paused'}{s.waiting > 0 && `, ${s.waiting} wait`}</span> : s.running ? <span className="badge accent">Running{s.waiting > 0 && `, ${s.waiting} wait`}</span> : s.waiting > 0 ? <span className="badge warn">{s.waiting} wait</span> : <span className="faint">idle</span>, nowrap: true },
      { head: 'Last used', cell: s => <Ago at={s.updated} />, nowrap: true },
      { head: 'Tokens', cell: s => <Tokens usage={s.usage} />, end: true },
      { head: 'Cost', cell: s => <Cost usage={s.usage} />, end: true },
      { head: '', cell: s => <Link to="/runs" search={{ session: s.key }} className="small">Runs</Link> },
    ]} />
  )
}
