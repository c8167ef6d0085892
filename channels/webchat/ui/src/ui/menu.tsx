import * as Drop from '@radix-ui/react-dropdown-menu'
import { useRef, useState, type ReactNode } from 'react'
import { Icon, type IconName } from './icon'

type Props = { trigger: ReactNode; children: ReactNode; align?: 'start' | 'end'; label?: string; sheet?: boolean; onOpen?: (open: boolean) => void }

// Menu opens under its trigger, which must be one focusable element. As a sheet it stands at the end of a narrow screen.
export function Menu({ trigger, children, align = 'start', label, sheet, onOpen }: Props) {
  const [open, set] = useState(false)
  const was = useRef(false)
  const change = (to: boolean) => { set(to); onOpen?.(to) }
  // A sheet may come under the finger that opens it: it waits for the click, or the same touch would choose what lies there.
  const late = sheet ? { onPointerDown: (e: React.PointerEvent) => { was.current = open; e.preventDefault() }, onClick: () => { change(!was.current) } } : {}
  return (
    <Drop.Root modal={false} open={open} onOpenChange={change}>
      <Drop.Trigger asChild {...late}>{trigger}</Drop.Trigger>
      <Drop.Portal>
        <Drop.Content className={sheet ? 'menu sheet' : 'menu'} align={align} sideOffset={4} collisionPadding={8} aria-label={label}>{children}</Drop.Content>
      </Drop.Portal>
    </Drop.Root>
  )
}

export function MenuItem({ icon, danger, onSelect, disabled, children }: { icon?: IconName; danger?: boolean; onSelect: () => void; disabled?: boolean; children: ReactNode }) {
  return (
    <Drop.Item className={danger ? 'menu-item danger' : 'menu-item'} onSelect={onSelect} disabled={disabled}>
      {icon && <Icon name={icon} />}<span className="truncate grow">{children}</span>
    </Drop.Item>
  )
}

export function MenuChoice({ value, choices, onChange, disabled }: { value: string; disabled?: boolean; choices: { value: string; label: ReactNode; icon?: IconName }[]; onChange: (value: string) => void }) {
  return (
    <Drop.RadioGroup value={value} onValueChange={onChange}>
      {choices.map(c => (
        <Drop.RadioItem key={c.value} className="menu-item" value={c.value} disabled={disabled && c.value !== value}>
          {c.icon && <Icon name={c.icon} />}<span className="truncate grow">{c.label}</span>
          <Drop.ItemIndicator><Icon name="check" /></Drop.ItemIndicator>
        </Drop.RadioItem>
      ))}
    </Drop.RadioGroup>
  )
}

export const MenuLabel = ({ children }: { children: ReactNode }) => <Drop.Label className="menu-label">{children}</Drop.Label>
export const MenuLine = () => <Drop.Separator className="menu-line" />
