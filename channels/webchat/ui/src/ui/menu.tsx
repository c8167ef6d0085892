import * as Drop from '@radix-ui/react-dropdown-menu'
import type { ReactNode } from 'react'
import { Icon, type IconName } from './icon'

// Menu opens under its trigger, which must be one focusable element.
export function Menu({ trigger, children, align = 'start', label }: { trigger: ReactNode; children: ReactNode; align?: 'start' | 'end'; label?: string }) {
  return (
    <Drop.Root modal={false}>
      <Drop.Trigger asChild>{trigger}</Drop.Trigger>
      <Drop.Portal>
        <Drop.Content className="menu" align={align} sideOffset={4} collisionPadding={8} aria-label={label}>{children}</Drop.Content>
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

export function MenuChoice({ value, choices, onChange }: { value: string; choices: { value: string; label: ReactNode; icon?: IconName }[]; onChange: (value: string) => void }) {
  return (
    <Drop.RadioGroup value={value} onValueChange={onChange}>
      {choices.map(c => (
        <Drop.RadioItem key={c.value} className="menu-item" value={c.value}>
          {c.icon && <Icon name={c.icon} />}<span className="truncate grow">{c.label}</span>
          <Drop.ItemIndicator><Icon name="check" /></Drop.ItemIndicator>
        </Drop.RadioItem>
      ))}
    </Drop.RadioGroup>
  )
}

export const MenuLabel = ({ children }: { children: ReactNode }) => <Drop.Label className="menu-label">{children}</Drop.Label>
export const MenuLine = () => <Drop.Separator className="menu-line" />
