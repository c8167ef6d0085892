import { useEffect, useId, useImperativeHandle, useLayoutEffect, useRef, useState, type ReactNode, type Ref } from 'react'
import type { Command, FileRef } from '../api/types'
import { draft, setDraft } from '../store/drafts'
import { IconButton } from '../ui/button'
import { bytes } from '../ui/format'
import { Icon } from '../ui/icon'
import { matching, useCommands } from './commands'
import { useUploads, type Upload } from './files'

export type ComposerHandle = { focus: () => void; add: (files: readonly File[]) => void; fill: (text: string) => void }

type Props = {
  name: string // of the draft: the session's key
  to: string // whom it asks
  onSend: (text: string, files: FileRef[]) => void | Promise<boolean> // false: it could not go, and stays here
  running: boolean
  stopping: boolean
  onStop: () => void
  onEditLast: () => void
  hint: string | undefined // why sending waits
  pickers?: ReactNode // whom and what it asks
  disabled?: string // why nothing can be said here
  ref: Ref<ComposerHandle>
}

const coarse = window.matchMedia('(pointer: coarse)')

// Composer is where a message is written: Enter sends, Shift+Enter is a new line, "/" lists the commands. The draft
// survives a reload; files come by drag, paste and picker.
export function Composer({ name, to, onSend, running, stopping, onStop, onEditLast, hint, pickers, disabled, ref }: Props) {
  const [text, setText] = useState(() => draft(name).text)
  const area = useRef<HTMLTextAreaElement>(null)
  const picker = useRef<HTMLInputElement>(null)
  const files = useUploads(draft(name).files, f => { setDraft(name, { text: area.current?.value ?? '', files: f }) })
  const change = (t: string) => {
    setText(t)
    setDraft(name, { text: t, files: draft(name).files })
  }
  useEffect(() => { // "/" begins a command from anywhere but a field
    const key = (e: KeyboardEvent) => {
      const at = e.target as HTMLElement
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || at.closest('input, textarea, select, [contenteditable], [role=dialog]')) return
      e.preventDefault()
      area.current?.focus()
      if (!area.current?.value) setText('/')
    }
    window.addEventListener('keydown', key)
    return () => { window.removeEventListener('keydown', key) }
  }, [])
  useEffect(() => { // the palette writes commands here
    const filled = (e: Event) => { if ((e as CustomEvent).detail === name) { setText(draft(name).text); area.current?.focus() } }
    window.addEventListener('parley.draft', filled)
    return () => { window.removeEventListener('parley.draft', filled) }
  }, [name])
  const menu = useMenu(text, t => { change(t); area.current?.focus() })
  useImperativeHandle(ref, () => ({ focus: () => { area.current?.focus() }, add: files.add, fill: t => { change(t); area.current?.focus() } }))
  useGrow(area, text)
  useEffect(() => { if (!coarse.matches) area.current?.focus() }, [name])

  const uploading = files.list.some(u => u.state === 'sending')
  const ready = files.list.flatMap(u => (u.ref ? [u.ref] : []))
  const [going, setGoing] = useState(false)
  const may = !disabled && !uploading && !going && (text.trim() !== '' || ready.length > 0)
  const send = () => {
    if (!may) return
    const gone = onSend(text.trim() === '' ? '' : text.replace(/\s+$/, ''), ready)
    const clear = () => {
      files.clear()
      change('')
      setDraft(name, { text: '', files: [] })
    }
    if (gone) {
      setGoing(true)
      void gone.then(ok => { if (ok) clear(); else setGoing(false) })
    } else clear()
    area.current?.focus()
  }
  const key = (e: React.KeyboardEvent) => {
    if (e.nativeEvent.isComposing || menu.key(e)) return
    if (e.key === 'Enter' && !e.shiftKey && !e.altKey && (!coarse.matches || e.ctrlKey || e.metaKey)) { e.preventDefault(); send() }
    if (e.key === 'Escape' && running && text === '') { e.preventDefault(); onStop() }
    if (e.key === 'ArrowUp' && text === '') { e.preventDefault(); onEditLast() }
  }
  return (
    <form className="composer" aria-label="Write a message" onSubmit={e => { e.preventDefault(); send() }}>
      {menu.open && <CommandMenu id={menu.id} at={menu.at} list={menu.list} pick={menu.pick} setAt={menu.setAt} />}
      {files.list.length > 0 && <ul className="chips" aria-label="Files">{files.list.map(u => <Chip key={u.id} upload={u} onRemove={() => { files.remove(u.id) }} />)}</ul>}
      <textarea ref={area} className="composer-text" rows={1} dir="auto" value={text} disabled={disabled !== undefined} placeholder={disabled ?? `Write to ${to}, or / for commands`} aria-label="Message"
        aria-autocomplete="list" aria-haspopup="listbox" aria-controls={menu.open ? menu.id : undefined} aria-activedescendant={menu.open ? `${menu.id}-${menu.at}` : undefined}
        onChange={e => { change(e.target.value); menu.reset() }} onKeyDown={key}
        onPaste={e => { const f = [...e.clipboardData.files]; if (f.length) { e.preventDefault(); files.add(f) } }} />
      <div className="composer-bar">
        <IconButton icon="clip" label="Attach files" disabled={disabled !== undefined} onClick={() => picker.current?.click()} />
        <input ref={picker} type="file" multiple hidden aria-label="Files to attach" tabIndex={-1} onChange={e => { files.add([...(e.target.files ?? [])]); e.target.value = '' }} />
        {pickers}
        <span className="composer-hint small faint truncate grow" role="status">{uploading ? 'Uploading…' : hint}</span>
        {running && <IconButton icon="stop" label={stopping ? 'Stopping…' : 'Stop'} className="stop" busy={stopping} onClick={onStop} />}
        {(!running || text.trim() !== '' || ready.length > 0) && <button type="submit" className="button icon primary" aria-label="Send" title="Send" disabled={!may}><Icon name="send" /></button>}
      </div>
    </form>
  )
}

// useGrow makes the field as high as what is in it; the style sheet says how high at most.
function useGrow(area: React.RefObject<HTMLTextAreaElement | null>, text: string) {
  useLayoutEffect(() => {
    const a = area.current
    if (!a) return
    a.style.height = 'auto'
    a.style.height = `${a.scrollHeight}px`
  }, [area, text])
}

function Chip({ upload: u, onRemove }: { upload: Upload; onRemove: () => void }) {
  return (
    <li className={u.state === 'failed' ? 'chip bad' : 'chip'}>
      {u.preview ? <img src={u.preview} alt="" /> : <Icon name={u.state === 'sending' ? 'spinner' : 'file'} className={u.state === 'sending' ? 'spin' : undefined} />}
      <span className="truncate">{u.name}</span>
      <span className="faint small">{u.state === 'failed' ? u.problem : bytes(u.size)}</span>
      <IconButton icon="close" label={`Remove ${u.name}`} onClick={onRemove} />
    </li>
  )
}

type Menu = { id: string; at: number; list: Command[]; pick: (c: Command) => void; setAt: (n: number) => void }

function useMenu(text: string, fill: (text: string) => void) {
  const commands = useCommands()
  const [at, setAt] = useState(0)
  const [shut, setShut] = useState(false)
  const id = useId()
  const list = /^\/[\w-]*$/.test(text) && !shut ? matching(commands, text) : []
  const open = list.length > 0
  const pick = (c: Command) => { setShut(true); fill(`/${c.name.replace(/^\//, '')}${c.args ? ' ' : ''}`) }
  const now = Math.min(at, list.length - 1)
  const key = (e: React.KeyboardEvent): boolean => {
    if (!open) return false
    const move = (n: number) => { setAt((now + n + list.length) % list.length) }
    const chosen = list[now] as Command
    switch (e.key) {
      case 'ArrowDown': move(1); break
      case 'ArrowUp': move(-1); break
      case 'Escape': setShut(true); break
      case 'Tab': pick(chosen); break
      case 'Enter':
        if (text === `/${chosen.name.replace(/^\//, '')}`) return false // it is whole: it is sent
        pick(chosen)
        break
      default: return false
    }
    e.preventDefault()
    return true
  }
  return { open, id, at: now, list, pick, setAt, key, reset: () => { setAt(0); setShut(false) } }
}

function CommandMenu({ id, at, list, pick, setAt }: Menu) {
  const box = useRef<HTMLUListElement>(null)
  useEffect(() => { box.current?.children[at]?.scrollIntoView({ block: 'nearest' }) }, [at])
  return (
    <ul className="menu commands" role="listbox" tabIndex={0} id={id} aria-label="Commands" ref={box}>
      {list.map((c, i) => (
        <li key={c.name} id={`${id}-${i}`} role="option" aria-selected={i === at} className="menu-item" data-highlighted={i === at || undefined} onPointerMove={() => { setAt(i) }}
          onPointerDown={e => { e.preventDefault(); pick(c) }}>
          <code>/{c.name.replace(/^\//, '')}{c.args ? ` ${c.args}` : ''}</code><span className="soft small truncate grow">{c.help}</span>
        </li>
      ))}
    </ul>
  )
}
