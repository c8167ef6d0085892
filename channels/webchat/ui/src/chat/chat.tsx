import { useNavigate } from '@tanstack/react-router'
import { Suspense, useCallback, useEffect, useMemo, useRef, useState, type DragEvent } from 'react'
import { call, post, segment } from '../api/http'
import type { FileRef, Generation, List, Session } from '../api/types'
import { useApi } from '../api/use'
import type { ChatSearch } from '../router'
import { SessionMenu } from '../sessions/menu'
import { Panel } from '../shell/panel'
import { useOpenSide } from '../shell/shell'
import { agentChosen } from '../store/app'
import { approvals } from '../store/approvals'
import { useAtom } from '../store/atom'
import { conversation } from '../store/conversation'
import { newId, newName } from '../store/ids'
import { useLine } from '../store/line'
import { write, type Sent } from '../store/outbox'
import { postsOf } from '../store/posts'
import type { Row } from '../store/rows'
import { put, sessions } from '../store/sessions'
import { textOf } from '../store/transcript'
import { Button, IconButton } from '../ui/button'
import { cost, shown, tokens } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { Caught, lazyPart } from '../ui/lazy'
import { useTitle } from '../ui/page'
import { Failed, Note, Skeleton } from '../ui/states'
import { toast } from '../ui/toast'
import { pointsOf, type Point } from './branches'
import { Composer, type ComposerHandle } from './composer'
import { again } from './files'
import { AgentPicker } from '../models/agent'
import { ModelPicker, NewModelPicker, type Choice } from '../models/picker'
import type { Waits } from './conversation-view'
import type { Acts } from './row-view'
import type { TranscriptHandle } from './transcript-view'
import { useAgents, useConversation, useLooking, useRows, useSeen, useSent, useSince } from './use-chat'
import { NoModelNote, noModel, Welcome } from './welcome'
import './chat.css'

// What a conversation is drawn with (Markdown, tool calls, approvals, runs) is half of the chat, and an empty one needs none of it.
const drawn = () => import('./conversation-view')
const ConversationView = lazyPart(drawn, 'ConversationView')
const FreshView = lazyPart(drawn, 'FreshView')
const RunPanel = lazyPart(drawn, 'RunPanel')

// ChatPage is one conversation; without a key a new one.
export function ChatPage({ sessionKey, search }: { sessionKey?: string; search: ChatSearch }) {
  return sessionKey === undefined ? <NewChat agent={search.agent} /> : <Chat key={`${sessionKey} ${search.gen ?? ''}`} sessionKey={sessionKey} search={search} />
}

// NewChat begins with its first message: the session is made by it, so that it can be written offline too.
function NewChat({ agent: asked }: { agent?: string }) {
  const go = useNavigate()
  const agents = useAgents()
  const chosen = useAtom(agentChosen)
  const agent = agents.find(a => a.id === (asked || chosen)) ?? agents.find(a => a.default) ?? agents[0]
  const [choice, choose] = useState<Choice>({})
  const [name] = useState(newName)
  const sent = useSent(undefined, name)
  const composer = useRef<ComposerHandle>(null)
  const line = useLine()
  const key = sent.find(m => m.state === 'stored')?.key
  useTitle('New chat')
  useEffect(() => { void drawn().catch(() => undefined) }, []) // who opens it is told why it does not come
  useEffect(() => { if (key) void go({ to: '/chat/$key', params: { key }, replace: true }) }, [key, go])
  const send = (text: string, files: FileRef[]) => {
    if (choice.model || choice.think) return begin(agent?.id ?? '', choice, text, files)
    write({ session: name, key: '', agent: agent?.id ?? '', text, files })
    return undefined
  }
  const begin = async (of: string, c: Choice, text: string, files: FileRef[]): Promise<boolean> => {
    try { // what is chosen must stand before the first message asks
      const s = await call<Session>('/v1/sessions', { method: 'POST', body: { agent: of }, headers: { 'Idempotency-Key': name } })
      await call(`/v1/sessions/${segment(s.key)}/models`, { method: 'PATCH', body: c })
      write({ session: s.key, key: s.key, agent: '', text, files })
      void go({ to: '/chat/$key', params: { key: s.key }, replace: true })
      return true
    } catch (err) {
      toast((err as Error).message)
      return false
    }
  }
  const other = (id: string) => {
    choose({})
    void go({ to: '/', search: { agent: id }, replace: true })
  }
  const pickers = <><AgentPicker agents={agents} agent={agent} onChange={other} />{agent && <NewModelPicker agent={agent.id} model={agent.models[0]} choice={choice} onChoice={choose} />}</>
  return (
    <Drop onFiles={f => { composer.current?.add(f) }}>
      <Header title="New chat" sub={agent && (agent.name || agent.id)} />
      {sent.length === 0
        ? <Welcome agent={agent} onPick={t => { void send(t, []) }} onReady={() => { composer.current?.focus() }} />
        : <Behind><FreshView sent={sent} online={line.state === 'open'} /></Behind>}
      <Foot><Composer ref={composer} name="" to={agent ? shown(agent.name || agent.id) : 'Parley'} onSend={send} pickers={pickers} running={false} stopping={false} onStop={() => undefined} onEditLast={() => undefined} hint={line.state === 'open' ? undefined : 'Offline: what you send waits here'} /></Foot>
    </Drop>
  )
}

function Chat({ sessionKey: key, search }: { sessionKey: string; search: ChatSearch }) {
  const go = useNavigate()
  const { c, view } = useConversation(key, search.gen ?? '')
  const { stored, growing } = useRows(c)
  const session = useSession(key)
  const sent = useSent(search.gen ? undefined : key)
  const line = useLine()
  const online = line.state === 'open'
  const agents = useAgents()
  const agent = agents.find(a => a.id === (session?.agent ?? key.split(':')[1]))
  const [atEnd, setAtEnd] = useState(true)
  const [editing, setEditing] = useState<Row & { kind: 'user' }>()
  const transcript = useRef<TranscriptHandle>(null)
  const composer = useRef<ComposerHandle>(null)
  const { t } = view
  const running = search.gen ? undefined : t.run
  const last = t.lines[t.lines.length - 1]?.sequence ?? 0
  const title = shown(session?.name || (view.state === 'ready' && !t.lines.length ? 'New chat' : 'Chat'))
  useTitle(title)
  useSeen(key, search.gen ? '' : t.sessionId, last, atEnd)
  useLooking(sent, view.state === 'ready' && online && !running)

  const showRun = useCallback((run: string) => { void go({ to: '/chat/$key', params: { key }, search: s => ({ ...s, run: s.run === run ? undefined : run }), replace: true }) }, [go, key])
  const branches = useBranches(key, search.gen, t.sessionId, stored)
  const { stop, stopping } = useStop(running)
  const fork = useFork(key, search.gen)
  const regenerate = useCallback((asked: number) => {
    const first = stored.findIndex(r => r.kind === 'user' && r.sequence === asked)
    const row = stored[first]
    if (row?.kind !== 'user') return
    const all = stored.filter(r => r.kind === 'user' && r.run === row.run) as (Row & { kind: 'user' })[]
    void fork(asked, all.map(r => textOf(r.item)).join('\n\n'), all.flatMap(r => filesOf(r)))
  }, [stored, fork])
  const acts = useMemo<Acts>(() => ({ names: session?.local === false, edit: search.gen || session?.local === false ? undefined : setEditing, again: search.gen || session?.local === false ? undefined : regenerate, failed: search.gen ? undefined : key, stop, showRun, branches }), [search.gen, session?.local, key, regenerate, stop, showRun, branches])

  const posts = useAtom(postsOf).filter(p => p.session === key && !search.gen)
  const asked = useAtom(approvals).filter(a => a.session === key && !search.gen)
  const waits = useReason(view.t, sent, online, asked.length > 0)
  const name = agent?.name || agent?.id || 'Agent'
  const empty = !stored.length && !growing.length && !waits && !asked.length && !posts.length && !sent.length
  const edit = editing && { id: editing.id, text: textOf(editing.item), onCancel: () => { setEditing(undefined); composer.current?.focus() }, onSend: (text: string) => {
    setEditing(undefined)
    composer.current?.focus()
    void fork(editing.sequence, text, filesOf(editing))
  } }
  const send = (text: string, files: FileRef[]) => {
    write({ session: key, key, agent: '', text, files })
    transcript.current?.toEnd()
  }
  const newest = useCallback(() => { void go({ to: '/chat/$key', params: { key }, search: {} }) }, [go, key])
  const older = useCallback(() => { void c.older() }, [c])
  return (
    <Drop onFiles={f => { composer.current?.add(f) }}>
      <Header title={title} sub={agent && name} session={session} />
      {view.state === 'failed' && view.error
        ? <div className="page-in"><Failed error={view.error} retry={() => { void c.load() }} /></div>
        : view.state === 'loading' ? <Loading />
          : empty ? <Welcome agent={agent} onPick={x => { send(x, []) }} onReady={() => { composer.current?.focus() }} />
            : <Behind><ConversationView ref={transcript} stored={stored} growing={growing} output={view.t.output} acts={acts} name={name} edit={edit} waits={waits} run={running} asked={asked} posts={posts} sent={sent} online={online}
              label={`Conversation ${title}`} older={view.older} onOlder={older} onAtEnd={setAtEnd} /></Behind>}
      <Announce rows={stored} name={name} running={running !== undefined} asked={asked[0]?.tool} />
      {search.gen
        ? <Foot><Note act={<span className="row wrap"><Button kind="small" onClick={() => { void fork(last + 1) }}>Go on from here</Button><Button kind="small" onClick={newest}>To the newest</Button></span>}>This is an earlier version of the chat. It can only be read.</Note></Foot>
        : <Foot>{noModel(agent) && !empty && <NoModelNote />}<Composer ref={composer} name={key} to={shown(name)} onSend={send} pickers={<ModelPicker session={key} model={session?.model} think={session?.think} />} running={running !== undefined} stopping={stopping} onStop={() => { stop() }} disabled={session && session.local === false ? `This chat is on ${session.network ?? 'another network'}. Write there.` : undefined}
          onEditLast={() => { const r = stored.findLast(x => x.kind === 'user'); if (r?.kind === 'user') setEditing(r) }} hint={online ? undefined : 'Offline: what you send waits here'} /></Foot>}
      {search.run && <Panel title="Run" onClose={() => { showRun(search.run ?? '') }}><Suspense fallback={<Skeleton lines={5} />}><RunPanel run={search.run} /></Suspense></Panel>}
    </Drop>
  )
}

function filesOf(r: Row & { kind: 'user' }): FileRef[] {
  return (r.item.parts ?? []).flatMap(p => { const ref = p.ref ?? p.blob; return ref ? [{ ref, name: p.name ?? '', mime: p.mime ?? '', size: p.size ?? 0 }] : [] })
}

// useSession is the session as the side bar knows it; one that is not in the list is asked for.
function useSession(key: string): Session | undefined {
  const known = useAtom(sessions).items.find(s => s.key === key)
  const asked = useApi<Session>(known ? null : `/v1/sessions/${segment(key)}`)
  return known ?? asked.data
}

// useStop stops the run; the button says at once that it does.
function useStop(run: string | undefined): { stop: () => void; stopping: boolean } {
  const [of, set] = useState<string>()
  const stop = useCallback(() => {
    if (!run || of === run) return
    set(run)
    post(`/v1/runs/${segment(run)}/stop`).catch((err: unknown) => { set(undefined); toast((err as Error).message) })
  }, [run, of])
  return { stop, stopping: run !== undefined && of === run }
}

// useFork begins a new generation before an event and says something there.
function useFork(key: string, generation: string | undefined) {
  const go = useNavigate()
  return useCallback(async (before: number, text?: string, files: FileRef[] = []) => {
    try {
      const refs = await Promise.all(files.map(again))
      const s = await call<Session>(`/v1/sessions/${segment(key)}/fork`, { method: 'POST', body: { before, ...(generation ? { session_id: generation } : {}) }, headers: { 'Idempotency-Key': newId() } })
      put(s)
      if (text !== undefined) write({ session: key, key, agent: '', text, files: refs })
      await conversation(key).load()
      if (generation) await go({ to: '/chat/$key', params: { key }, search: {} })
    } catch (err) {
      toast((err as Error).message)
    }
  }, [go, key, generation])
}

// useBranches knows which messages have other versions.
function useBranches(key: string, shown: string | undefined, newest: string, stored: readonly Row[]): Acts['branches'] {
  const go = useNavigate()
  const here = shown ?? newest
  const { data } = useApi<List<Generation>>(here ? `/v1/sessions/${segment(key)}/generations` : null, { again: here })
  return useMemo(() => {
    const latest = data?.items.reduce((a, g) => (g.generation > a.generation ? g : a))?.session_id
    const at = new Map<number, Point>()
    for (const p of pointsOf(data?.items ?? [], here)) {
      const row = stored.find(r => r.kind === 'user' && r.sequence >= p.before) // behind the beginning of its turn
      if (row?.kind === 'user') at.set(row.sequence, p)
    }
    return sequence => {
      const p = at.get(sequence)
      return p && { at: p.at + 1, of: p.versions.length, go: n => { const to = p.newest[n - 1]; void go({ to: '/chat/$key', params: { key }, search: to === latest ? {} : { gen: to } }) } }
    }
  }, [data, here, stored, go, key])
}

// useReason is why nothing is to be seen, in words.
function useReason(t: ReturnType<typeof conversation>['view'] extends { get: () => infer V } ? V extends { t: infer T } ? T : never : never, sent: readonly Sent[], online: boolean, asked: boolean): Waits | undefined {
  const begun = useSince(t.run)
  if (!t.run) {
    const m = sent.find(x => x.state === 'stored')
    return m && online ? { text: 'Waiting for its turn', since: m.at } : undefined
  }
  if (!online) return { text: 'Cut off. What is answered meanwhile is here when the line is back', since: begun }
  if (asked) return { text: 'Waiting for your approval', since: begun }
  if (t.status) return { text: sentence(t.status.text), since: t.status.since, failing: t.status.failing, due: t.status.due, asked: t.asked }
  if (t.grown.some(g => g.text)) return undefined
  if (t.calls.size || t.output.size) return undefined
  return { text: 'Thinking', since: begun, asked: t.asked }
}

const sentence = (s: string): string => s.charAt(0).toUpperCase() + s.slice(1)

// Announce tells a screen reader that something came. What it says is read from the answer itself, once it is whole.
function Announce({ rows, name, running, asked }: { rows: readonly Row[]; name: string; running: boolean; asked?: string }) {
  const [text, set] = useState('')
  const was = useRef<string>(undefined)
  const last = rows.findLast(r => r.kind === 'answer' || r.kind === 'error' || r.kind === 'end' || r.kind === 'command')
  useEffect(() => {
    if (running && last?.kind === 'answer') return // it goes on: what was said so far is no answer yet
    if (was.current !== undefined && last && last.id !== was.current) set(last.kind === 'answer' ? `${name} has answered.` : last.kind === 'command' ? 'The command was answered.' : 'The run has ended.')
    was.current = last?.id ?? ''
  }, [last, name, running])
  return <div className="sr-only" role="status">{asked !== undefined ? `${name} waits for you: it asks before it uses ${shown(asked)}.` : running && was.current === undefined ? '' : text}</div>
}

function Header({ title, sub, session }: { title: string; sub?: string; session?: Session }) {
  const openSide = useOpenSide()
  const u = session?.usage
  const used = u ? u.inputTokens + u.outputTokens + u.cacheReadTokens + u.cacheWriteTokens : 0
  return (
    <header className="bar chat-bar">
      <span className="narrow-only"><IconButton icon="menu" label="Open the side bar" onClick={openSide} /></span>
      {session && session.local === false && <Icon name={networkIcon(session.network)} />}
      <h1 className="truncate" title={title}>{title}</h1>
      <span className="small faint truncate grow chat-sub">{sub}</span>
      {u && used > 0 && <span className="small faint num wide-only" title="Of this chat">{tokens(used)} tokens{u.totalCostUsd !== null && ` · ${cost(u.totalCostUsd)}`}</span>}
      {session && <SessionMenu session={session} />}
    </header>
  )
}

const Foot = ({ children }: { children: React.ReactNode }) => <div className="foot"><div className="column">{children}</div></div>

// Behind is for what is loaded behind the composer, so that one can write before it is here.
const Behind = ({ children }: { children: React.ReactNode }) => <Caught><Suspense fallback={<Loading />}>{children}</Suspense></Caught>

function Loading() {
  return (
    <div className="transcript-box"><div className="transcript fresh" role="status" aria-label="Loading the conversation">
      {[60, 200, 60, 120].map((h, i) => <div key={i} className="column"><div className={i % 2 ? 'skeleton' : 'skeleton own'} style={{ height: h }} /></div>)}
    </div></div>
  )
}

// Drop takes files that are dragged onto the chat.
function Drop({ onFiles, children }: { onFiles: (files: File[]) => void; children: React.ReactNode }) {
  const [over, set] = useState(false)
  const has = (e: DragEvent) => e.dataTransfer.types.includes('Files')
  return (
    <div className="chat" onDragOver={e => { if (has(e)) { e.preventDefault(); set(true) } }} onDragLeave={e => { if (!e.currentTarget.contains(e.relatedTarget as Node | null)) set(false) }}
      onDrop={e => { if (has(e)) { e.preventDefault(); set(false); onFiles([...e.dataTransfer.files]) } }}>
      {children}
      {over && <div className="drop" aria-hidden="true"><Icon name="clip" />Drop files to attach them</div>}
    </div>
  )
}
