import { Link, useNavigate, useRouterState } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import type { Session } from '../api/types'
import { usePages } from '../api/use'
import { adminPages, chatPages, type PageOf } from '../shell/nav'
import { agentChosen, needs, signed, signOut } from '../store/app'
import { Saved } from '../store/saved'
import { useAtom } from '../store/atom'
import { isUnread, reads } from '../store/reads'
import { more, read, sessions } from '../store/sessions'
import { Button, IconButton } from '../ui/button'
import { dayOf, shown } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from '../ui/menu'
import { Failed, Skeleton } from '../ui/states'
import { setTheme, theme, type Theme } from '../ui/theme'
import { useNow } from '../ui/time'
import { SessionMenu } from './menu'
import './sessions.css'

const touch = window.matchMedia('(pointer: coarse)').matches
const mac = /Mac|iP(hone|ad)/.test(navigator.platform)

// SideBar: the agent, its sessions of every channel, what needs the person, and the pages.
export function SideBar({ onPalette, onClose }: { onPalette: () => void; onClose: () => void }) {
  const go = useNavigate()
  const [text, setText] = useState('')
  const query = useDeferredValue(text.trim())
  return (
    <nav className="side" aria-label="Chats and pages">
      <div className="side-top">
        <div className="row"><Button icon="plus" className="side-new grow" onClick={() => { onClose(); void go({ to: '/' }) }}>New chat</Button><span className="narrow-only"><IconButton icon="close" label="Close the side bar" onClick={onClose} /></span></div>
        <div className="side-search">
          <Icon name="search" />
          <input className="field" type="search" placeholder="Search" aria-label="Search chats" value={text} onChange={e => { setText(e.target.value) }} onKeyDown={e => { if (e.key === 'Escape') { setText('') } }} />
          <button type="button" className="kbd" title="Go to a chat, page or command" onClick={onPalette}>{touch ? 'Go to' : mac ? '⌘K' : 'Ctrl K'}<span className="sr-only"> Go to a chat, page or command</span></button>
        </div>
        <AgentFilter />
      </div>
      {query ? <Found query={query} /> : <All />}
      <div className="side-foot">
        <Inbox />
        {chatPages.map(p => <PageLink key={p.to} page={p} />)}
        <Manage />
        <Account />
      </div>
    </nav>
  )
}

// AgentFilter says whose chats are listed. Whom a new one goes to is chosen where it is written.
function AgentFilter() {
  const s = useAtom(signed)
  const chosen = useAtom(agentChosen)
  const agents = s.state === 'in' ? s.me.agents : []
  if (agents.length < 2) return null
  const agent = agents.find(a => a.id === chosen)
  return (
    <Menu label="Chats of" trigger={<button type="button" className="button quiet small side-agent"><Icon name="filter" /><span className="sr-only">Show chats of: </span><span className="truncate grow">{agent ? agent.name || agent.id : 'All agents'}</span><Icon name="down" /></button>}>
      <MenuLabel>Show chats of</MenuLabel>
      <MenuChoice value={agent?.id ?? ''} onChange={agentChosen.set} choices={[{ value: '', label: 'All agents' }, ...agents.map(a => ({ value: a.id, label: a.name || a.id }))]} />
    </Menu>
  )
}

function Inbox() {
  const n = useAtom(needs)
  const all = n.pairings + n.approvals + n.failing
  return <Link to="/inbox" className="side-link" activeProps={{ 'aria-current': 'page' }}><Icon name="bell" /><span className="grow">Inbox</span>{all > 0 && <span className="badge count num" aria-label={`${all} waiting`}>{all}</span>}</Link>
}

const PageLink = ({ page: p }: { page: PageOf }) => <Link to={p.to} className="side-link" activeProps={{ 'aria-current': 'page' }}><Icon name={p.icon} />{p.label}</Link>

const managing = new Saved('parley.manage', false)

// Manage holds the pages of those who look after the gateway, apart from the chats.
function Manage() {
  const open = useAtom(managing)
  const path = useRouterState({ select: s => s.location.pathname })
  const here = adminPages.some(p => path.startsWith(p.to))
  const shows = open || here
  return (
    <div className="side-manage">
      <button type="button" className="side-link" aria-expanded={shows} onClick={() => { managing.set(!shows) }} disabled={here}><Icon name="config" /><span className="grow">Manage</span><Icon name={shows ? 'down' : 'right'} /></button>
      {shows && <div className="side-sub">{adminPages.map(p => <PageLink key={p.to} page={p} />)}</div>}
    </div>
  )
}

// Account is who is signed in, and what is theirs to set here.
function Account() {
  const s = useAtom(signed)
  const [now, set] = useState<Theme>(theme)
  if (s.state !== 'in') return null
  const { person, version } = s.me
  const name = shown(person.name || person.id)
  return (
    <Menu label="Account" trigger={<button type="button" className="side-link"><Icon name="person" /><span className="truncate grow"><span className="sr-only">Account: </span>{name}</span><span className="faint small">{person.role}</span></button>}>
      <MenuLabel>Colours</MenuLabel>
      <MenuChoice value={now} onChange={v => { setTheme(v as Theme); set(v as Theme) }} choices={[{ value: 'system', label: 'As the system', icon: 'system' }, { value: 'light', label: 'Light', icon: 'sun' }, { value: 'dark', label: 'Dark', icon: 'moon' }]} />
      <MenuLine />
      <MenuItem icon="out" onSelect={() => { void signOut() }}>Sign out</MenuItem>
      <MenuLine />
      <MenuLabel>{`Parley ${version}`}</MenuLabel>
    </Menu>
  )
}

function All() {
  const s = useAtom(sessions)
  if (s.state === 'loading') return <div className="side-list"><Skeleton lines={6} height="2.75rem" /></div>
  if (s.state === 'failed' && s.error) return <div className="side-list"><Failed error={s.error} retry={() => { void read() }} /></div>
  if (!s.items.length) return <p className="side-none soft small">No chats yet. What you and others say to your agents, on any channel, is listed here.</p>
  return <List items={s.items} onEnd={s.next ? () => { void more() } : undefined} />
}

function Found({ query }: { query: string }) {
  const agent = useAtom(agentChosen)
  const found = usePages<Session>(`/v1/sessions?limit=50&q=${encodeURIComponent(query)}${agent ? `&agent=${encodeURIComponent(agent)}` : ''}`)
  if (found.error) return <div className="side-list"><Failed error={found.error} retry={found.reload} /></div>
  if (!found.data) return <div className="side-list"><Skeleton lines={4} height="2.75rem" /></div>
  if (!found.data.length) return <p className="side-none soft small" role="status">Nothing is found for “{query}”.</p>
  return <List items={found.data} onEnd={found.more} />
}

type Entry = { kind: 'day'; label: string } | { kind: 'session'; session: Session }

// List draws the sessions that are in view: there may be thousands.
function List({ items, onEnd }: { items: readonly Session[]; onEnd?: () => void }) {
  const now = useNow()
  const box = useRef<HTMLDivElement>(null)
  const entries = useMemo(() => {
    const list: Entry[] = []
    let day = ''
    for (const session of items) {
      const label = dayOf(new Date(session.updated), now)
      if (label !== day) { day = label; list.push({ kind: 'day', label }) }
      list.push({ kind: 'session', session })
    }
    return list
  }, [items, now])
  const virtual = useVirtualizer({
    count: entries.length,
    getScrollElement: () => box.current,
    estimateSize: i => (entries[i]?.kind === 'day' ? 32 : 52),
    getItemKey: i => { const e = entries[i]; return e?.kind === 'session' ? e.session.key : `day ${e?.label}` },
    overscan: 10,
  })
  const shown = virtual.getVirtualItems()
  const last = shown[shown.length - 1]?.index ?? 0
  useEffect(() => { if (onEnd && last >= entries.length - 10) onEnd() }, [last, entries.length, onEnd])
  const current = useRouterState({ select: s => s.matches.find(m => m.routeId === '/chat/$key')?.params as { key?: string } | undefined })?.key
  useNeighbours(items, current)
  return (
    <div className="side-list" ref={box} tabIndex={-1}>
      <ul className="side-in" style={{ height: virtual.getTotalSize() }} aria-label="Chats">
        {shown.map(v => {
          const e = entries[v.index]
          return <li key={v.key} className="side-line" style={{ height: v.size, transform: `translateY(${v.start}px)` }}>{e?.kind === 'session' ? <One session={e.session} current={e.session.key === current} /> : <h2 className="side-day">{e?.label}</h2>}</li>
        })}
      </ul>
    </div>
  )
}

// useNeighbours: Alt with an arrow goes to the session above or below.
function useNeighbours(items: readonly Session[], current: string | undefined) {
  const go = useNavigate()
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (!e.altKey || e.ctrlKey || e.metaKey || (e.key !== 'ArrowUp' && e.key !== 'ArrowDown')) return
      const i = items.findIndex(s => s.key === current)
      const to = items[e.key === 'ArrowDown' ? i + 1 : i - 1]
      if (!to) return
      e.preventDefault()
      void go({ to: '/chat/$key', params: { key: to.key } })
    }
    window.addEventListener('keydown', key)
    return () => { window.removeEventListener('keydown', key) }
  }, [items, current, go])
}

const networks: Record<string, string> = { telegram: 'Telegram', slack: 'Slack', discord: 'Discord', whatsapp: 'WhatsApp', webchat: 'WebChat', api: 'API' }

function One({ session: s, current }: { session: Session; current: boolean }) {
  useAtom(reads)
  const unread = !current && isUnread(s)
  const where = s.local === false || s.channel ? networks[s.network ?? ''] ?? s.network ?? 'WebChat' : 'WebChat'
  const title = shown(s.name || s.key)
  return (
    <div className={`side-one${current ? ' current' : ''}${unread ? ' unread' : ''}`}>
      <Link to="/chat/$key" params={{ key: s.key }} aria-current={current ? 'page' : undefined}>
        <Icon name={networkIcon(s.local === false ? s.network : undefined)} />
        <span className="side-words">
          <span className="side-title truncate" dir="auto">{title}</span>
          <span className="side-preview truncate" dir="auto">{shown(s.preview) || (s.sequence > 0 ? 'Commands only' : where)}</span>
        </span>
        <span className="sr-only">{[where, s.state === 'waiting' ? 'waiting for you' : s.running && 'running', s.waiting && `${s.waiting} waiting`, unread && 'unread'].filter(Boolean).join(', ')}</span>
        {s.state === 'waiting' ? <span className="side-waits" title="Waiting for you"><Icon name="clock" /></span> : s.running && <span className="side-run" title="Running"><Icon name="spinner" className="spin" /></span>}
        {unread && <span className="dot accent" title="Unread" />}
      </Link>
      <SessionMenu session={s} quiet />
    </div>
  )
}
