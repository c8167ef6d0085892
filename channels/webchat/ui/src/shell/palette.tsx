import { useNavigate } from '@tanstack/react-router'
import { useDeferredValue, useEffect, useId, useMemo, useRef, useState } from 'react'
import { Dialog } from '../ui/dialog'
import { Icon, networkIcon, type IconName } from '../ui/icon'
import { matching, useCommands } from '../chat/commands'
import { useApi } from '../api/use'
import type { List, Session } from '../api/types'
import { draft, setDraft } from '../store/drafts'
import { useAtom } from '../store/atom'
import { sessions } from '../store/sessions'
import { pages } from './nav'

type Choice = { id: string; label: string; hint?: string; icon: IconName; run: () => void }

// Palette finds sessions, pages and commands by a few letters.
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  return <Dialog open={open} onClose={onClose} title="Go to" hideTitle className="palette">{open && <Find onClose={onClose} />}</Dialog>
}

function Find({ onClose }: { onClose: () => void }) {
  const go = useNavigate()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useRef<HTMLUListElement>(null)
  const id = useId()
  const known = useAtom(sessions).items
  const commands = useCommands()
  const query = useDeferredValue(text.trim())
  const wide = useApi<List<Session>>(query.length > 1 && !query.startsWith('/') ? `/v1/sessions?limit=20&q=${encodeURIComponent(query)}` : null).data?.items
  const choices = useMemo<Choice[]>(() => [
    { id: 'new', label: 'New chat', icon: 'plus', run: () => { void go({ to: '/' }) } },
    { id: 'inbox', label: 'Inbox', icon: 'bell', run: () => { void go({ to: '/inbox' }) } },
    ...pages.map(p => ({ id: p.to, label: p.label, icon: p.icon, run: () => { void go({ to: p.to }) } })),
    ...known.slice(0, 500).map(s => ({ id: s.key, label: s.name || s.key, hint: s.local === false ? s.network : undefined, icon: networkIcon(s.local === false ? s.network : undefined), run: () => { void go({ to: '/chat/$key', params: { key: s.key } }) } })),
  ], [go, known])
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const toCommand = (name: string) => {
    const key = (/^\/chat\/([^/]+)/.exec(location.pathname)?.[1] ?? '')
    const of = decodeURIComponent(key)
    setDraft(of, { text: `/${name} `, files: draft(of).files })
    void go(of ? { to: '/chat/$key', params: { key: of } } : { to: '/' }).then(() => { window.dispatchEvent(new CustomEvent('parley.draft', { detail: of })) })
  }
  const slash: Choice[] = text.startsWith('/') ? matching(commands, text.trim()).map(c => ({ id: `cmd ${c.name}`, label: `/${c.name.replace(/^\//, '')}`, hint: c.help, icon: 'terminal', run: () => { toCommand(c.name.replace(/^\//, '')) } })) : []
  const more: Choice[] = (wide ?? []).filter(s => !choices.some(c => c.id === s.key)).map(s => ({ id: s.key, label: s.name || s.key, hint: s.preview, icon: networkIcon(s.local === false ? s.network : undefined), run: () => { void go({ to: '/chat/$key', params: { key: s.key } }) } }))
  const found = text.startsWith('/') ? slash : [...choices.filter(c => words.every(w => `${c.label} ${c.hint ?? ''}`.toLowerCase().includes(w))).slice(0, 50), ...more]
  const chosen = Math.min(at, found.length - 1)
  useEffect(() => { list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }) }, [chosen])
  const pick = (c: Choice | undefined) => { if (c) { onClose(); c.run() } }
  return (
    <>
      <input className="palette-input" role="combobox" aria-label="Go to" aria-expanded="true" aria-controls={id} aria-activedescendant={found[chosen] ? `${id}-${chosen}` : undefined}
        placeholder="Chats, pages, commands…" value={text} autoFocus onChange={e => { setText(e.target.value); setAt(0) }} onKeyDown={e => {
          if (e.key === 'ArrowDown') { e.preventDefault(); setAt((chosen + 1) % Math.max(found.length, 1)) }
          if (e.key === 'ArrowUp') { e.preventDefault(); setAt((chosen - 1 + found.length) % Math.max(found.length, 1)) }
          if (e.key === 'Enter' && !e.nativeEvent.isComposing) { e.preventDefault(); pick(found[chosen]) }
        }} />
      <ul className="palette-list" role="listbox" id={id} aria-label="Found" ref={list}>
        {found.map((c, i) => (
          <li key={c.id} id={`${id}-${i}`} role="option" aria-selected={i === chosen} className="menu-item" data-highlighted={i === chosen || undefined}
            onPointerMove={() => { setAt(i) }} onClick={() => { pick(c) }}>
            <Icon name={c.icon} /><span className="truncate grow">{c.label}</span>{c.hint && <span className="faint small truncate">{c.hint}</span>}
          </li>
        ))}
      </ul>
      {!found.length && <p className="palette-none soft" role="status">Nothing is called that.</p>}
    </>
  )
}
