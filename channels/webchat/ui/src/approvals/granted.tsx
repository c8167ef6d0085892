import type { ReactNode } from 'react'
import { call, segment } from '../api/http'
import type { List } from '../api/types'
import type { Grant } from '../api/types.gen'
import { useAct, useApi } from '../api/use'
import { Unseen } from '../chat/markdown-view'
import { SessionLink } from '../runs/parts'
import { approvals } from '../store/approvals'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { shown } from '../ui/format'
import { Failed } from '../ui/states'
import { Ago } from '../ui/time'
import { toast } from '../ui/toast'
import './approval.css'

// Granted is what runs without a question, since somebody allowed it in its session: in all of them, or in one.
export function Granted({ session, title }: { session?: string; title: (list: ReactNode) => ReactNode }) {
  const asked = useAtom(approvals)
  const { data, error, reload } = useApi<List<Grant>>(session ? `/v1/grants?session=${segment(session)}` : '/v1/grants', { again: asked })
  if (error) return <Failed error={error} retry={reload} />
  if (!data || data.items.length === 0) return null
  return title(<ul className="granted">{data.items.map(g => <GrantRow key={g.id} grant={g} here={session !== undefined} gone={reload} />)}</ul>)
}

function GrantRow({ grant: g, here, gone }: { grant: Grant; here: boolean; gone: () => void }) {
  const act = useAct(async () => {
    await call(`/v1/grants/${segment(g.id)}`, { method: 'DELETE' })
    toast('It asks again from now on.')
    gone()
  })
  return (
    <li className="card row wrap">
      <div className="grow stack-s">
        <div><code className="ask-rule"><Unseen text={g.allows} /></code> <span className="soft small">{g.program ? 'command' : 'tool'}</span></div>
        <div className="soft small">for <bdi>{shown(g.asked_by)}</bdi>{!here && <> in <SessionLink session={g.session} source={g.source} /></>}, given by <bdi>{shown(g.decided_by_name)}</bdi>, {g.until ? <>until <Ago at={g.until} /></> : 'until the session begins again'}</div>
        {act.error && <Failed error={act.error} />}
      </div>
      <Button kind="small" busy={act.busy} disabled={act.busy} onClick={() => { void act.run() }}>Revoke<span className="sr-only"> {g.allows}</span></Button>
    </li>
  )
}
