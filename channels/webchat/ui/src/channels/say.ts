import type { Channel } from '../api/types.gen'

// How a channel is, in words for who looks at the page. Pure.

export const states: Record<string, { label: string; kind: string }> = {
  ready: { label: 'Connected', kind: 'good' }, connecting: { label: 'Connecting', kind: 'accent' }, deaf: { label: 'Hears nothing', kind: 'warn' },
  idle: { label: 'No page is open', kind: '' },
  needs: { label: 'Needs you', kind: 'warn' }, failed: { label: 'Failed', kind: 'bad' }, fatal: { label: 'Failed', kind: 'bad' },
}

export const troubled = (c: Channel): boolean => !['ready', 'connecting', 'idle'].includes(c.state)

const networks: Record<string, string> = { telegram: 'Telegram', slack: 'Slack', discord: 'Discord', whatsapp: 'WhatsApp', webchat: 'WebChat' }
export const networkName = (type: string): string => networks[type] ?? type

// unlinked says that an account that lives on a phone can be linked now; linked that there is one to take away.
export const unlinked = (c: Channel): boolean => c.type === 'whatsapp' && !c.account && troubled(c)
export const linked = (c: Channel): boolean => c.type === 'whatsapp' && !!c.account

// hintOf is what to do. Where a button of the page does it, the command line is not what to name.
export const hintOf = (c: Channel): string => (c.hint ?? '').replace(/Link one: parley channel login\b.*$/, 'Link one with the button below: the phone scans a code.')

// sentence begins with a capital and ends with a full stop.
export function sentence(text: string): string {
  const t = text.trim()
  return t === '' ? '' : t.charAt(0).toUpperCase() + t.slice(1) + (/[.!?…:]$/.test(t) ? '' : '.')
}
