import { Link } from '@tanstack/react-router'
import { lasted } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { useNow } from '../ui/time'
import { live } from './state'

// SessionLink leads to a conversation; its key is long, so that the end of it, which differs, is what is seen.
export function SessionLink({ session, source, name }: { session: string; source?: string; name?: string }) {
  const tail = session.split(':').slice(2).join(':') || session
  return (
    <Link to="/chat/$key" params={{ key: session }} title={session} className="row key-link">
      <Icon name={networkIcon(source)} /><span className="truncate">{name || tail}</span>
    </Link>
  )
}

export function AgentLink({ agent }: { agent: string }) {
  return agent ? <Link to="/agents/$agent" params={{ agent }}>{agent}</Link> : <span className="faint">–</span>
}

export function PersonName({ id, name }: { id: string; name?: string }) {
  if (!id) return <span className="faint">–</span>
  return <span title={id}>{name || id.slice(-6)}</span>
}

// Took is how long something lasted, or has lasted so far.
export function Took({ from, to, state }: { from?: string; to?: string; state: string }) {
  const now = useNow()
  if (!from) return <span className="faint">–</span>
  if (!to && !live(state)) return <span className="faint">–</span>
  const ms = (to ? Date.parse(to) : Math.max(now, Date.now())) - Date.parse(from)
  return <span className="num">{lasted(ms)}{!to && '…'}</span>
}
