import type { IconName } from '../ui/icon'

// The pages beside the chat, in the order in which they are listed: of chats, and of those who look after the gateway.
export const chatPages = [
  { to: '/sessions', label: 'All chats', icon: 'chat' },
] as const satisfies readonly Entry[]

export const adminPages = [
  { to: '/agents', label: 'Agents', icon: 'agent' },
  { to: '/channels', label: 'Channels', icon: 'channel' },
  { to: '/people', label: 'People', icon: 'person' },
  { to: '/runs', label: 'Runs', icon: 'run' },
  { to: '/usage', label: 'Usage', icon: 'usage' },
  { to: '/logs', label: 'Logs', icon: 'log' },
  { to: '/audit', label: 'Audit', icon: 'audit' },
  { to: '/config', label: 'Config', icon: 'config' },
] as const satisfies readonly Entry[]

type Entry = { to: string; label: string; icon: IconName }

export const pages = [...chatPages, ...adminPages]
export type PageOf = (typeof pages)[number]
