import { useNavigate } from '@tanstack/react-router'
import { useRef, useState, type RefObject } from 'react'
import { call, segment } from '../api/http'
import type { Session } from '../api/types'
import { useAct } from '../api/use'
import { gone, put } from '../store/sessions'
import { shown } from '../ui/format'
import { Button, IconButton } from '../ui/button'
import { copyText } from '../ui/copy'
import { Confirm, Dialog } from '../ui/dialog'
import { Menu, MenuItem, MenuLine } from '../ui/menu'
import { Note } from '../ui/states'
import { toast } from '../ui/toast'
import { Files } from './files'

// SessionMenu is what can be done with a session.
export function SessionMenu({ session: s, quiet }: { session: Session; quiet?: boolean }) {
  const go = useNavigate()
  const trigger = useRef<HTMLButtonElement>(null)
  const [open, set] = useState<'rename' | 'files' | 'delete'>()
  const remove = useAct(() => call(`/v1/sessions/${segment(s.key)}`, { method: 'DELETE' }))
  const title = shown(s.name)
  return (
    <>
      <Menu align="end" label={`Chat ${title}`} trigger={<IconButton ref={trigger} icon="more" label={`Options of ${title}`} className={quiet ? 'on-hover' : undefined} onClick={e => { e.preventDefault() }} />}>
        <MenuItem icon="edit" onSelect={() => { set('rename') }}>Rename</MenuItem>
        <MenuItem icon="link" onSelect={() => { void copyText(`${location.origin}/chat/${segment(s.key)}`).then(() => { toast('The link is copied.') }) }}>Copy link</MenuItem>
        <MenuItem icon="copy" onSelect={() => { void copyText(s.key).then(() => { toast('The ID is copied: commands and the API take it.') }) }}>Copy ID</MenuItem>
        <MenuItem icon="file" onSelect={() => { set('files') }}>Files</MenuItem>
        <MenuLine />
        <MenuItem icon="trash" danger onSelect={() => { set('delete') }}>Delete</MenuItem>
      </Menu>
      {open === 'rename' && <Rename session={s} back={trigger} onClose={() => { set(undefined) }} />}
      {open === 'files' && <Files session={s} back={trigger} onClose={() => { set(undefined) }} />}
      <Confirm back={trigger} open={open === 'delete'} onClose={() => { set(undefined) }} title="Delete this chat?" act="Delete" busy={remove.busy}
        text={<><p>“{title}” leaves the list, and what runs in it is stopped. This cannot be undone here. The record stays on the gateway; who writes there again begins afresh.</p>{remove.error && <Note kind="bad">{remove.error.message}</Note>}</>}
        onConfirm={() => {
          void remove.run().then(ok => {
            if (!ok) return
            set(undefined)
            gone(s.key)
            toast('The chat is deleted.')
            if (decodeURIComponent(location.pathname).includes(s.key) || location.pathname.endsWith(encodeURIComponent(s.key))) void go({ to: '/' })
          })
        }} />
    </>
  )
}

function Rename({ session: s, onClose, back }: { session: Session; onClose: () => void; back: RefObject<HTMLElement | null> }) {
  const [name, setName] = useState(s.name ?? '')
  const act = useAct(async () => { put(await call<Session>(`/v1/sessions/${segment(s.key)}`, { method: 'PATCH', body: { name: name.trim() } })) })
  return (
    <Dialog open onClose={onClose} title="Rename the chat" back={back}>
      <form className="stack" onSubmit={e => { e.preventDefault(); void act.run().then(ok => { if (ok) onClose() }) }}>
        <label className="label">Name<input className="field" value={name} maxLength={120} autoFocus onFocus={e => { e.target.select() }} onChange={e => { setName(e.target.value) }} /></label>
        {act.error && <Note kind="bad">{act.error.message}</Note>}
        <div className="dialog-foot"><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit" busy={act.busy}>Rename</Button></div>
      </form>
    </Dialog>
  )
}
