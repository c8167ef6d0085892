import { useRef, useState, type ReactNode, type RefObject } from 'react'
import { call, segment } from '../api/http'
import type { Session } from '../api/types'
import type { FilesRemoved, WorkFile, WorkFiles } from '../api/types.gen'
import { useAct, useApi } from '../api/use'
import { Button, IconButton } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { bytes, number, shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Failed, Note, Skeleton } from '../ui/states'
import { toast } from '../ui/toast'

// Files shows what fills the work folder of a session, folder by folder, and removes what is not needed.
export function Files({ session: s, onClose, back }: { session: Session; onClose: () => void; back: RefObject<HTMLElement | null> }) {
  const base = `/v1/sessions/${segment(s.key)}/files`
  const [path, open] = useState('.')
  const [asked, ask] = useState<string>()
  const top = useRef<HTMLDivElement>(null)
  const files = useApi<WorkFiles>(path === '.' ? base : `${base}?path=${encodeURIComponent(path)}`)
  const remove = useAct(async (it: WorkFile) => {
    const done = await call<FilesRemoved>(`${base}?path=${encodeURIComponent(it.path)}&folder=${it.folder}`, { method: 'DELETE' })
    toast(done.audited ? `${shown(it.path)} is removed.` : `${shown(it.path)} is removed. The audit log gets it when the store can be written again.`)
  })
  const go = (to: string) => { open(to); ask(undefined); top.current?.focus() }
  const line = (it: WorkFile) => (
    <Line key={it.path} item={it} below={path} asked={asked === it.path} busy={remove.busy} onOpen={() => { go(it.path) }} onAsk={on => { ask(on ? it.path : undefined) }}
      onRemove={() => {
        void remove.run(it).then(ok => {
          files.reload()
          if (ok) { ask(undefined); top.current?.focus() }
        })
      }} />
  )
  const v = files.data
  const deep = v?.largest.filter(f => !v.items.some(i => i.path === f.path)) ?? []
  return (
    <Dialog open onClose={onClose} title="Files" back={back} className="dialog work">
      <div ref={top} tabIndex={-1} className="stack" aria-label="Work folder" role="group">
        {v ? <Use files={v} /> : !files.error && <Skeleton lines={4} height="2rem" />}
        {files.error && <Failed error={files.error} retry={files.reload} />}
        {remove.error && <Note kind="bad">{remove.error.message}</Note>}
        {path !== '.' && <div className="row"><Button kind="small" icon="left" onClick={() => { go(path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '.') }}>Back</Button><code className="truncate">{shown(path)}/</code></div>}
        {v && v.items.length === 0 && <p className="soft">{path === '.' ? 'Nothing is in the work folder. What the agent writes for this chat, and files that are sent to it, are kept here.' : 'Nothing is in this folder.'}</p>}
        {v && v.items.length > 0 && <List label={path === '.' ? 'In the work folder' : 'In this folder'}>{v.items.map(line)}</List>}
        {deep.length > 0 && <><h3 className="small soft">The largest files further down</h3><List label="The largest files further down">{deep.map(line)}</List></>}
        {v && v.mounted.length > 0 && <p className="small soft">Not counted, and not removed here: {v.mounted.map(m => shown(m)).join(', ')} (shown here by an owner).</p>}
      </div>
      <div className="dialog-foot"><Button onClick={onClose}>Close</Button></div>
    </Dialog>
  )
}

const List = ({ label, children }: { label: string; children: ReactNode }) => <ul className="work-list" aria-label={label}>{children}</ul>

// Use is how full the work folder is, by the limit that is nearer.
function Use({ files: v }: { files: WorkFiles }) {
  const part = v.max_bytes ? Math.min(1, Math.max(v.bytes / v.max_bytes, v.files / v.max_files)) : 0
  const text = v.max_bytes ? `${v.more ? 'more than ' : ''}${bytes(v.bytes)} of ${bytes(v.max_bytes)}, ${number(v.files)} of ${number(v.max_files)} files and folders` : 'empty'
  return (
    <>
      <div className={part > 0.9 ? 'work-bar full' : 'work-bar'} role="meter" aria-label="Used of the work folder" aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(part * 100)} aria-valuetext={text}><span style={{ inlineSize: `${part * 100}%` }} /></div>
      <p className="small soft num">{text}{v.shared && <>. Other chats work in this folder too.</>}</p>
      {v.disk_low && <Note kind="warn">The disk has {bytes(v.disk_free)} free, and nothing is written below {bytes(v.disk_kept)}. Removing files works.</Note>}
    </>
  )
}

// Line is one of them. Asked, what is safe stands where the button was that asks: a second click of the same finger removes nothing.
function Line({ item: it, below, asked, busy, onOpen, onAsk, onRemove }: { item: WorkFile; below: string; asked: boolean; busy: boolean; onOpen: () => void; onAsk: (on: boolean) => void; onRemove: () => void }) {
  const trash = useRef<HTMLButtonElement>(null)
  const name = shown(below !== '.' && it.path.startsWith(`${below}/`) ? it.path.slice(below.length + 1) : it.path)
  if (asked) {
    return (
      <li className="work-ask"><span className="grow">Remove {it.folder ? <><code>{name}/</code> and the {number(it.files)} in it</> : <code>{name}</code>} for good?</span>
        <span className="row"><Button kind="danger small" busy={busy} onClick={onRemove}>Remove</Button><Button kind="small" autoFocus onClick={() => { onAsk(false); requestAnimationFrame(() => trash.current?.focus()) }}>Keep</Button></span></li>
    )
  }
  return (
    <li>
      <Icon name={it.folder ? 'folder' : 'file'} />
      {it.folder && it.removable ? <button type="button" className="work-name truncate" title={name} onClick={onOpen}>{name}/</button> : <span className="work-name truncate" title={name}>{name}</span>}
      <span className="small soft num">{bytes(it.bytes)}</span>
      <IconButton ref={trash} icon="trash" label={it.removable ? `Remove ${name}` : `${name} cannot be named: remove the folder that it is in`} disabled={!it.removable || busy} onClick={() => { onAsk(true) }} />
    </li>
  )
}
