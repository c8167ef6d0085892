import { Link } from '@tanstack/react-router'
import { lasted, shown } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { useNow } from '../ui/time'
import { live } from './state'

// tail is what tells one session of an agent from another: its key without agent, network and account.
export function tail(key: string): string {
  const parts = key.split(':').map(p => { try { return decodeURIComponent(p) } catch { return p } })
  const rest = parts.slice(parts[2] === 'local' || parts[2] === 'person' || parts[2] === 'main' ? 3 : 4)
  return (rest.length ? rest : parts.slice(2)).join(' ') || key
}

// SessionLink leads to a conversation. The whole key is on hover.
export function SessionLink({ session, source, name }: { session: string; source?: string; name?: string }) {
  return (
    <Link to="/chat/$key" params={{ key: session }} title={session} className="row key-link">
      <Icon name={networkIcon(source)} /><span className="truncate"><bdi>{shown(name || tail(session))}</bdi></span>
    </Link>
  )
}

export function AgentLink({ agent }: { agent: string }) {
  return agent ? <Link to="/agents/$agent" params={{ agent }}>{agent}</Link> : <span className="faint">–</span>
}

export function PersonName({ id }: { id: string }) {
  if (!id) return <span className="faint">–</span>
  return <span title={id} className="nowrap"><bdi>{shown(id.length === 26 ? id.slice(-6) : id)}</bdi></span>
}

// Took is how long something lasted, or has lasted so far.
export function Took({ from, to, state }: { from?: string; to?: string; state: string }) {
  const now = useNow()
  if (!from) return <span className="faint">–</span>
  if (!to && !live(state)) return <span className="faint">–</span>
  const ms = (to ? Date.parse(to) : Math.max(now, Date.now())) - Date.parse(from)
  return <span className="num">{lasted(ms)}{!to && '…'}</span>
}
