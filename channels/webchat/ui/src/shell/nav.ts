import type { IconName } from '../ui/icon'

// pages are the pages beside the chat, in the order in which they are listed.
export const pages = [
  { to: '/sessions', label: 'Sessions', icon: 'chat' },
  { to: '/agents', label: 'Agents', icon: 'agent' },
  { to: '/channels', label: 'Channels', icon: 'channel' },
  { to: '/people', label: 'People', icon: 'person' },
  { to: '/runs', label: 'Runs', icon: 'run' },
  { to: '/usage', label: 'Usage', icon: 'usage' },
  { to: '/logs', label: 'Logs', icon: 'log' },
  { to: '/audit', label: 'Audit', icon: 'audit' },
  { to: '/config', label: 'Config', icon: 'config' },
] as const satisfies readonly { to: string; label: string; icon: IconName }[]
