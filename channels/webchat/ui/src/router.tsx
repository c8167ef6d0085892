import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router'
import { ChatPage } from './chat/chat'
import { Missing, Shell } from './shell/shell'
import { Failed } from './ui/states'
import { lazyPage } from './ui/lazy'

// Every page, session and run has an address that can be reloaded and shared. The chat is in the first bundle, pages are
// loaded when they are opened.
const root = createRootRoute({ component: Shell, notFoundComponent: Missing, errorComponent: ({ error }: { error: unknown }) => <div className="page"><div className="page-in"><Failed error={error instanceof Error ? error : new Error(String(error))} /></div></div> })

const text = (v: unknown): string | undefined => (typeof v === 'string' && v !== '' ? v : undefined)
export type ChatSearch = { gen?: string; run?: string; agent?: string }
const chatSearch = (s: Record<string, unknown>): ChatSearch => ({ gen: text(s.gen), run: text(s.run), agent: text(s.agent) })

const fresh = createRoute({ getParentRoute: () => root, path: '/', validateSearch: chatSearch, component: function Fresh() {
  return <ChatPage search={fresh.useSearch()} />
} })
const chat = createRoute({ getParentRoute: () => root, path: '/chat/$key', validateSearch: chatSearch, component: function Chat() {
  return <ChatPage sessionKey={chat.useParams().key} search={chat.useSearch()} />
} })
// Filters of a page stand in its address.
const only = <K extends string>(...names: K[]) => (s: Record<string, unknown>) => Object.fromEntries(names.map(n => [n, text(s[n])])) as Partial<Record<K, string>>

const SessionsPage = lazyPage(() => import('./sessions'), 'SessionsPage')
const sessions = createRoute({ getParentRoute: () => root, path: '/sessions', validateSearch: only('q', 'agent'), component: function All() { return <SessionsPage search={sessions.useSearch()} /> } })
const agents = createRoute({ getParentRoute: () => root, path: '/agents', component: lazyPage(() => import('./agents'), 'AgentsPage') })
const AgentPage = lazyPage(() => import('./agents'), 'AgentPage')
const agent = createRoute({ getParentRoute: () => root, path: '/agents/$agent', component: function One() { return <AgentPage agent={agent.useParams().agent} /> } })
const model = createRoute({ getParentRoute: () => root, path: '/models/new', component: lazyPage(() => import('./setup'), 'ModelPage') })
const ChannelsPage = lazyPage(() => import('./channels'), 'ChannelsPage')
const channels = createRoute({ getParentRoute: () => root, path: '/channels', validateSearch: only('add', 'edit'), component: function All() { return <ChannelsPage search={channels.useSearch()} /> } })
const PeoplePage = lazyPage(() => import('./people'), 'PeoplePage')
const people = createRoute({ getParentRoute: () => root, path: '/people', validateSearch: only('add', 'edit'), component: function All() { return <PeoplePage search={people.useSearch()} /> } })
const RunsPage = lazyPage(() => import('./runs'), 'RunsPage')
const runs = createRoute({ getParentRoute: () => root, path: '/runs', validateSearch: only('agent', 'session', 'state', 'requester'), component: function All() { return <RunsPage search={runs.useSearch()} /> } })
const RunPage = lazyPage(() => import('./runs'), 'RunPage')
const run = createRoute({ getParentRoute: () => root, path: '/runs/$run', component: function One() { return <RunPage run={run.useParams().run} /> } })
const UsagePage = lazyPage(() => import('./usage'), 'UsagePage')
const usage = createRoute({ getParentRoute: () => root, path: '/usage', validateSearch: only('by', 'days', 'agent'), component: function Sum() { return <UsagePage search={usage.useSearch()} /> } })
const LogsPage = lazyPage(() => import('./logs'), 'LogsPage')
const logs = createRoute({ getParentRoute: () => root, path: '/logs', validateSearch: only('level', 'q'), component: function Log() { return <LogsPage search={logs.useSearch()} /> } })
const AuditPage = lazyPage(() => import('./audit'), 'AuditPage')
const audit = createRoute({ getParentRoute: () => root, path: '/audit', validateSearch: only('kind'), component: function Rows() { return <AuditPage search={audit.useSearch()} /> } })
const ConfigPage = lazyPage(() => import('./config'), 'ConfigPage')
const config = createRoute({ getParentRoute: () => root, path: '/config', validateSearch: only('view'), component: function All() { return <ConfigPage search={config.useSearch()} /> } })
const inbox = createRoute({ getParentRoute: () => root, path: '/inbox', component: lazyPage(() => import('./needs'), 'InboxPage') })
const needs = createRoute({ getParentRoute: () => root, path: '/needs', beforeLoad: () => { throw redirect({ to: '/inbox', replace: true }) } }) // as it was called

export const router = createRouter({
  routeTree: root.addChildren([fresh, chat, sessions, agents, agent, model, channels, people, runs, run, usage, logs, audit, config, inbox, needs]),
  defaultPreload: 'intent',
})

declare module '@tanstack/react-router' {
  interface Register { router: typeof router }
}
