import type { ButtonHTMLAttributes, Ref } from 'react'
import { Icon, type IconName } from './icon'
import { Tip } from './tip'

type Kind = 'primary' | 'quiet' | 'danger' | 'small'
type Props = ButtonHTMLAttributes<HTMLButtonElement> & { kind?: Kind | `${Kind} ${Kind}`; icon?: IconName; busy?: boolean; ref?: Ref<HTMLButtonElement> }

// Button is every button with a word on it.
export function Button({ kind, icon, busy, className, children, disabled, ...rest }: Props) {
  return (
    <button type="button" className={['button', kind, className].filter(Boolean).join(' ')} disabled={disabled || busy} aria-busy={busy || undefined} {...rest}>
      {busy ? <Icon name="spinner" className="spin" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

type IconProps = Omit<Props, 'children' | 'kind' | 'icon'> & { icon: IconName; label: string; kind?: Kind }

// IconButton has a sign and a name that is read out and shown on hover.
export function IconButton({ icon, label, kind = 'quiet', className, busy, disabled, ...rest }: IconProps) {
  return (
    <Tip text={label}>
      <button type="button" className={['button icon', kind, className].filter(Boolean).join(' ')} aria-label={label} disabled={disabled || busy} {...rest}>
        <Icon name={busy ? 'spinner' : icon} className={busy ? 'spin' : undefined} />
      </button>
    </Tip>
  )
}
