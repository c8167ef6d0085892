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
import { exact, shown } from '../ui/format'
import { Failed } from '../ui/states'
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
        <dl className="facts small">
          <dt>For</dt><dd><bdi>{shown(g.asked_by)}</bdi></dd>
          {!here && <><dt>In</dt><dd><SessionLink session={g.session} source={g.source} /></dd></>}
          <dt>Given by</dt><dd><bdi>{shown(g.decided_by_name)}</bdi></dd>
          <dt>Until</dt><dd>{g.until ? <time dateTime={g.until}>{exact(new Date(g.until))}</time> : 'the session begins again'}</dd>
        </dl>
        {act.error && <Failed error={act.error} />}
      </div>
      <Button kind="small" busy={act.busy} disabled={act.busy} aria-label={`Revoke ${shown(g.allows)}`} onClick={() => { void act.run() }}>Revoke</Button>
    </li>
  )
}
