import type { Ref } from 'react'
import type { Approval, Post } from '../api/types'
import { ApprovalCard } from '../approvals/card'
import { drop, retry, type Sent } from '../store/outbox'
import { dropPost, press } from '../store/posts'
import type { Row } from '../store/rows'
import { Button, IconButton } from '../ui/button'
import { Note } from '../ui/states'
import { EditMessage } from './edit'
import { Markdown } from './markdown-view'
import { Files, Outgoing, RowView, Waiting, type Acts } from './row-view'
import { TranscriptView, type Line, type TranscriptHandle, type TranscriptProps } from './transcript-view'

export { RunPanel } from '../runs/panel'

type Props = Omit<TranscriptProps, 'lines' | 'ref'> & {
  stored: readonly Row[]
  growing: readonly Row[]
  acts: Acts
  name: string // of the agent
  edit?: { id: string; text: string; onCancel: () => void; onSend: (text: string) => void } // instead of the row of this id
  waits?: { text: string; since: number; failing?: boolean }
  run?: string // that goes on
  asked: readonly Approval[]
  posts: readonly Post[]
  sent: readonly Sent[]
  online: boolean
  ref: Ref<TranscriptHandle>
}

// ConversationView draws what was said, what is being said, and what stands behind it.
export function ConversationView({ stored, growing, acts, name, edit, waits, run, asked, posts, sent, online, ...rest }: Props) {
  const lines: Line[] = [
    ...stored.map(r => lineOf(r, acts, name, edit?.id === r.id ? <EditMessage text={edit.text} onCancel={edit.onCancel} onSend={edit.onSend} /> : undefined)),
    ...growing.map(r => lineOf(r, acts, name)),
    ...(waits ? [{ id: 'waits', size: 40, counts: false, view: <div className="column"><Waiting key={waits.failing ? 'failing' : waits.text} text={waits.text} since={waits.since} failing={waits.failing} run={run ?? ''} acts={acts} /></div> }] : []),
    ...asked.map(a => ({ id: `ask/${a.id}`, size: 320, counts: true, view: <div className="column"><ApprovalCard approval={a} here /></div> })),
    ...posts.map(p => ({ id: `post/${p.id}`, size: 80, counts: true, view: <div className="column"><Told post={p} /></div> })),
    ...sent.map(m => ({ id: `sent/${m.id}`, size: 72, counts: true, view: <OnItsWay sent={m} online={online} behind={run !== undefined} /> })),
  ]
  return <TranscriptView {...rest} lines={lines} />
}

// FreshView is a chat whose first message is on its way.
export function FreshView({ sent, online }: { sent: readonly Sent[]; online: boolean }) {
  return <div className="transcript-box"><div className="transcript fresh" role="region" aria-label="Conversation">{sent.map(m => <OnItsWay key={m.id} sent={m} online={online} behind={false} />)}</div></div>
}

const sizes: Record<Row['kind'], number> = { day: 40, user: 96, answer: 220, steps: 44, command: 120, error: 70, end: 70, mark: 40 }

function lineOf(r: Row, acts: Acts, name: string, instead?: React.ReactNode): Line {
  return { id: r.id, size: sizes[r.kind], counts: r.kind !== 'day' && r.kind !== 'steps', view: <div className="column">{instead ?? <RowView row={r} acts={acts} name={name} />}</div> }
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
