import { createContext, useContext, useEffect, useState, type ReactNode } from 'react'
import { createPortal } from 'react-dom'
import { IconButton } from '../ui/button'

// The right-hand panel: one slot of the shell, filled by whichever page wants it. On a narrow screen it is a sheet.
const Slot = createContext<{ slot: HTMLElement | null; claim: (open: boolean) => void }>({ slot: null, claim: () => undefined })
export const PanelSlot = Slot.Provider

// Panel shows its children in the slot while it is mounted.
export function Panel({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const { slot, claim } = useContext(Slot)
  useEffect(() => {
    claim(true)
    return () => { claim(false) }
  }, [claim])
  useEffect(() => {
    const key = (e: KeyboardEvent) => { if (e.key === 'Escape' && !e.defaultPrevented && slot?.contains(document.activeElement)) onClose() }
    window.addEventListener('keydown', key)
    return () => { window.removeEventListener('keydown', key) }
  }, [onClose, slot])
  return slot && createPortal(
    <section className="panel" aria-label={title}>
      <header className="bar"><h2 className="grow truncate">{title}</h2><IconButton icon="close" label="Close the panel" onClick={onClose} /></header>
      <div className="panel-body">{children}</div>
    </section>, slot)
}

export function usePanelSlot() {
  const [slot, set] = useState<HTMLElement | null>(null)
  const [open, claim] = useState(false)
  return { slot, set, open, claim }
}
