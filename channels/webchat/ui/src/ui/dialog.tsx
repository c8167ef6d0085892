import * as D from '@radix-ui/react-dialog'
import { useRef, type ReactNode, type RefObject } from 'react'
import { Button } from './button'

type Props = { open: boolean; onClose: () => void; title: string; text?: ReactNode; children?: ReactNode; foot?: ReactNode; className?: string; hideTitle?: boolean; onOpen?: (e: Event) => void; back?: RefObject<HTMLElement | null> }

// Dialog takes the focus and gives it back, to what back names where that which opened it is gone (a menu's item). Escape
// and a click beside it close it.
export function Dialog({ open, onClose, title, text, children, foot, className, hideTitle, onOpen, back }: Props) {
  return (
    <D.Root open={open} onOpenChange={o => { if (!o) onClose() }}>
      <D.Portal>
        <D.Overlay className="veil" />
        <D.Content className={className ?? 'dialog'} onOpenAutoFocus={onOpen} onCloseAutoFocus={e => { if (back?.current) { e.preventDefault(); back.current.focus() } }} {...(text ? {} : { 'aria-describedby': undefined })}>
          <D.Title className={hideTitle ? 'sr-only' : undefined}>{title}</D.Title>
          {text && <D.Description className="soft" asChild><div>{text}</div></D.Description>}
          {children}
          {foot && <div className="dialog-foot">{foot}</div>}
        </D.Content>
      </D.Portal>
    </D.Root>
  )
}

// Confirm asks before something that cannot be taken back. The focus is on what is safe.
export function Confirm({ open, onClose, title, text, act, onConfirm, busy, back }: { back?: RefObject<HTMLElement | null>; open: boolean; onClose: () => void; title: string; text: ReactNode; act: string; onConfirm: () => void; busy?: boolean }) {
  const safe = useRef<HTMLButtonElement>(null)
  return (
    <Dialog open={open} onClose={onClose} title={title} text={text} back={back} onOpen={e => { e.preventDefault(); safe.current?.focus() }}
      foot={<><Button ref={safe} onClick={onClose}>Cancel</Button><Button kind="danger primary" busy={busy} onClick={onConfirm}>{act}</Button></>} />
  )
}
