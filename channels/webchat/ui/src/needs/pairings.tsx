import { useState } from 'react'
import { post, segment } from '../api/http'
import type { Pairing } from '../api/types.gen'
import type { List } from '../api/types'
import { useAct, useApi } from '../api/use'
import { Refused, useApply } from '../setup/apply'
import { needs } from '../store/app'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { Confirm } from '../ui/dialog'
import { shown } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { Failed, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import { toast } from '../ui/toast'
import './needs.css'

const roles = [
  { value: 'guest', label: 'Guest', text: 'can talk, with file tools of their own' },
  { value: 'member', label: 'Member', text: 'can also use the API and chats of their own here' },
  { value: 'owner', label: 'Owner', text: 'may do everything that you may' },
]

// Pairings are strangers who wrote and were not let in, with a decision for each.
export function Pairings({ quiet }: { quiet?: boolean }) {
  const waiting = useAtom(needs).pairings
  const { data, error, reload } = useApi<List<Pairing>>('/v1/pairings', { again: waiting })
  if (error) return <Failed error={error} retry={reload} />
  if (!data) return <Skeleton lines={2} />
  const open = data.items.filter(p => p.state === 'open')
  const decided = data.items.filter(p => p.state !== 'open').slice(0, 10)
  return (
    <div className="stack">
      {open.map(p => <Request key={p.id} pairing={p} done={reload} />)}
      {open.length === 0 && !quiet && <p className="soft">Nobody waits. When a stranger writes to Parley, they get a code, and their request stands here for seven days.</p>}
      {decided.length > 0 && !quiet && (
        <details><summary className="soft small">Decided lately</summary>
          <ul className="decided">{decided.map(p => <li key={p.id} className="row wrap small"><Icon name={networkIcon(p.type)} /><bdi>{shown(p.name || p.user)}</bdi><span className={p.state === 'approved' ? 'badge good' : 'badge'}>{p.state}</span><span className="soft"><Ago at={p.decided} /></span></li>)}</ul>
        </details>
      )}
    </div>
  )
}

function Request({ pairing: p, done }: { pairing: Pairing; done: () => void }) {
  const who = shown(p.name || p.user)
  const [role, setRole] = useState('guest')
  const [asking, ask] = useState(false)
  const approve = useApply(async () => { await post(`/v1/pairings/${segment(p.id)}/approve`, { as: role }); toast(`${who} may now speak as ${role}.`); done() })
  const deny = useAct(async () => { await post(`/v1/pairings/${segment(p.id)}/deny`); toast(`${who} was sent away.`); done() })
  return (
    <article className="card stack" aria-label={`Request of ${who}`}>
      <div className="row wrap"><Icon name={networkIcon(p.type)} /><strong><bdi>{shown(p.name || 'No name')}</bdi></strong><span className="soft">on {p.channel} · id <code>{p.user}</code> · <Ago at={p.requested} /></span></div>
      <p className="small soft">The name is what they call themselves. The id is what counts: ask the person if you are not sure.</p>
      {deny.error && <Failed error={deny.error} />}
      {!asking && <Refused act={approve} />}
      <div className="row wrap decide">
        <label className="row small role">as <select className="field" value={role} onChange={e => { setRole(e.target.value) }} aria-label="Role">{roles.map(r => <option key={r.value} value={r.value}>{r.label}: {r.text}</option>)}</select></label>
        <Button kind="danger" busy={deny.busy} onClick={() => { void deny.run() }}>Deny</Button>
        <Button kind="primary" busy={approve.busy} onClick={() => { if (role === 'owner') ask(true); else void approve.run() }}>Approve</Button>
      </div>
      <Confirm open={asking} onClose={() => { ask(false) }} title={`Make ${who} an owner?`} text="An owner reads every chat, decides about people and may run commands. This cannot be limited later from here."
        act="Make an owner" busy={approve.busy} onConfirm={() => { ask(false); void approve.run() }} />
    </article>
  )
}
