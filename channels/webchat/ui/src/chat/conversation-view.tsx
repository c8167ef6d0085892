import type { Ref } from 'react'
import type { Approval, Post } from '../api/types'
import type { Trouble } from '../api/types.gen'
import { ApprovalCard } from '../approvals/card'
import { drop, retry, type Sent } from '../store/outbox'
import { dropPost, press } from '../store/posts'
import type { Row } from '../store/rows'
import type { Transcript } from '../store/transcript'
import { Button, IconButton } from '../ui/button'
import { Note } from '../ui/states'
import { useSeconds } from '../ui/time'
import { Output } from './call'
import { EditMessage } from './edit'
import { Markdown } from './markdown-view'
import { Failing, Silent } from './failing'
import { Files, Outgoing, RowView, Waiting, type Acts } from './row-view'
import { TranscriptView, type Line, type TranscriptHandle, type TranscriptProps } from './transcript-view'

export { RunPanel } from '../runs/panel'

// Waits is why nothing is to be seen: in words, or a model that fails, or one that is asked since then.
export type Waits = { text: string; since: number; failing?: Trouble; due?: number; asked?: { who: string; since: number } }

type Props = Omit<TranscriptProps, 'lines' | 'ref'> & {
  stored: readonly Row[]
  growing: readonly Row[]
  output: Transcript['output']
  acts: Acts
  name: string // of the agent
  edit?: { id: string; text: string; onCancel: () => void; onSend: (text: string) => void } // instead of the row of this id
  waits?: Waits
  run?: string // that goes on
  asked: readonly Approval[]
  posts: readonly Post[]
  sent: readonly Sent[]
  online: boolean
  ref: Ref<TranscriptHandle>
}

// ConversationView draws what was said, what is being said, and what stands behind it.
export function ConversationView({ stored, growing, output, acts, name, edit, waits, run, asked, posts, sent, online, ...rest }: Props) {
  const lines: Line[] = [
    ...stored.map((r, i) => lineOf(r, acts, name, i === stored.length - 1 && !sent.length, edit?.id === r.id ? <EditMessage text={edit.text} onCancel={edit.onCancel} onSend={edit.onSend} /> : undefined)),
    ...growing.map(r => lineOf(r, acts, name, false)),
    ...(waits ? [{ id: 'waits', size: waits.failing ? 96 : 40, counts: false, view: <div className="column"><Reason waits={waits} run={run ?? ''} acts={acts} /></div> }] : []),
    ...asked.map(a => ({ id: `ask/${a.id}`, size: 320, counts: true, view: <div className="column"><ApprovalCard approval={a} here /></div> })),
    ...posts.map(p => ({ id: `post/${p.id}`, size: 80, counts: true, view: <div className="column"><Told post={p} /></div> })),
    ...sent.map(m => ({ id: `sent/${m.id}`, size: 72, counts: true, view: <OnItsWay sent={m} online={online} behind={run !== undefined} /> })),
  ]
  return <Output value={output}><TranscriptView {...rest} lines={lines} /></Output>
}

// FreshView is a chat whose first message is on its way.
export function FreshView({ sent, online }: { sent: readonly Sent[]; online: boolean }) {
  return <div className="transcript-box"><div className="transcript fresh" role="region" aria-label="Conversation">{sent.map(m => <OnItsWay key={m.id} sent={m} online={online} behind={false} />)}</div></div>
}

const sizes: Record<Row['kind'], number> = { day: 40, user: 96, answer: 220, steps: 44, command: 120, error: 70, end: 70, mark: 40 }

function lineOf(r: Row, acts: Acts, name: string, last: boolean, instead?: React.ReactNode): Line {
  return { id: r.id, size: sizes[r.kind], counts: r.kind !== 'day' && r.kind !== 'steps', view: <div className="column">{instead ?? <RowView row={r} acts={acts} name={name} last={last} />}</div> }
}

const patience = 10 // seconds that a model may send nothing

// Reason says why nothing is to be seen.
function Reason({ waits: w, run, acts }: { waits: Waits; run: string; acts: Acts }) {
  const silent = useSeconds(w.asked?.since ?? Infinity) >= patience
  if (acts.failed && w.failing) return <Failing trouble={w.failing} due={w.due} asking={w.asked !== undefined} run={run} session={acts.failed} acts={acts} />
  if (acts.failed && w.asked && silent) return <Silent who={w.asked.who} since={w.asked.since} run={run} session={acts.failed} acts={acts} />
  return <Waiting key={w.text} text={w.text} since={w.since} run={run} acts={acts} />
}

function OnItsWay({ sent: m, online, behind }: { sent: Sent; online: boolean; behind: boolean }) {
  return <div className="column"><Outgoing sent={m} online={online} behind={behind} onRetry={() => { retry(m.id) }} onDrop={() => { drop(m.id) }} /></div>
}

// Told is what the gateway says to the conversation beside its transcript.
function Told({ post: p }: { post: Post }) {
  return (
    <Note act={<IconButton icon="close" label="Close this notice" onClick={() => { dropPost(p.id) }} />}>
      <Markdown text={p.text} growing={false} />
      <Files parts={(p.files ?? []).map(f => ({ type: 'file_ref', ...f }))} />
      {p.actions && <div className="row wrap">{p.actions.flat().map(a => <Button key={a.Value} kind="small" onClick={() => { press(p, a.Value) }}>{a.Label}</Button>)}</div>}
    </Note>
  )
}
