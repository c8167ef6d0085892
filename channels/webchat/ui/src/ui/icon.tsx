// Icons, drawn on a 24-unit grid with one stroke. They are decoration: the control that holds one has the name.
const paths = {
  menu: 'M4 6h16M4 12h16M4 18h16',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  plus: 'M12 5v14M5 12h14',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  close: 'M6 6l12 12M18 6L6 18',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  edit: 'M4 20l1-4L16 5l3 3L8 19l-4 1zM14 7l3 3',
  again: 'M4 12a8 8 0 0 1 14-5l2 2M20 4v5h-5M20 12a8 8 0 0 1-14 5l-2-2M4 20v-5h5',
  clip: 'M19 11l-7.5 7.5a4.6 4.6 0 0 1-6.5-6.5L13 4a3.1 3.1 0 0 1 4.4 4.4l-8 8a1.6 1.6 0 0 1-2.2-2.2L14 7.5',
  down: 'M6 9l6 6 6-6',
  up: 'M6 15l6-6 6 6',
  right: 'M9 6l6 6-6 6',
  left: 'M15 6l-6 6 6 6',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  warn: 'M12 4l9 16H3zM12 10v5M12 17.5v.01',
  info: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v6M12 7.5v.01',
  tool: 'M14 7a4 4 0 0 1 5-3l-3 3 1 2 2 1 3-3a4 4 0 0 1-5 5L9 20a2.1 2.1 0 0 1-3-3l8-8z',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 2',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M4 12H2M22 12h-2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5',
  moon: 'M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z',
  system: 'M4 5h16v11H4zM9 20h6M12 16v4',
  bell: 'M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 20a2 2 0 0 0 4 0',
  out: 'M14 4h5v16h-5M4 12h11M11 8l4 4-4 4',
  web: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
  chat: 'M5 5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-6l-5 4v-4H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z',
  plane: 'M3 11l18-7-4 17-5-7-9-3zM12 14l9-10',
  hash: 'M9 4L7 20M17 4l-2 16M4 9h16M4 15h16',
  terminal: 'M4 5h16v14H4zM8 10l3 2.5L8 15M13 15h3',
  phone: 'M6 3h4l2 5-2.5 2a12 12 0 0 0 5 5l2-2.5 5 2v4a2 2 0 0 1-2 2A16 16 0 0 1 4 5a2 2 0 0 1 2-2z',
  agent: 'M5 9h14v10H5zM12 9V5M9.5 13.5v1.5M14.5 13.5v1.5M12 4v.01M2.5 13v3M21.5 13v3',
  channel: 'M5 12a7 7 0 0 1 14 0M8 12a4 4 0 0 1 8 0M12 12v8M9 20h6',
  run: 'M4 12h4l3-7 4 14 2-7h3',
  usage: 'M4 20V10M10 20V4M16 20v-7M21 20H3',
  log: 'M5 4h14v16H5zM8 9h8M8 13h8M8 17h5',
  audit: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4',
  config: 'M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM19 12l2-1-1-3-2 .5-1.500-1.500L17 5l-3-1-1 2h-2l-1-2-3 1 .5 2L6 8.500 4 8l-1 3 2 1v1l-2 1 1 3 2-.5L7.500 18 7 20l3 1 1-2h2l1 2 3-1-.5-2 1.500-1.500 2 .5 1-3-2-1z',
  file: 'M6 3h8l5 5v13H6zM14 3v5h5',
  folder: 'M3 6h6l2 2h10v11H3z',
  link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  offline: 'M3 3l18 18M5 12a10 10 0 0 1 4-2.500M19 12a10 10 0 0 0-6-3M8.500 15.500a5 5 0 0 1 6.500-.500M12 19v.01',
  person: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM5 20a7 7 0 0 1 14 0',
  spinner: 'M12 3a9 9 0 1 0 9 9',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, className }: { name: IconName; className?: string }) {
  return (
    <svg className={className ? `ico ${className}` : 'ico'} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth={name === 'more' ? 3 : 1.75} strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}

// networkIcon shows where a session is: the same sign everywhere.
export function networkIcon(network: string | undefined): IconName {
  switch (network) {
    case 'telegram': return 'plane'
    case 'slack': return 'hash'
    case 'discord': return 'chat'
    case 'whatsapp': return 'phone'
    case 'api': return 'link'
    case 'terminal': case 'cli': return 'terminal'
    case 'task': return 'clock'
    default: return 'web'
  }
}
