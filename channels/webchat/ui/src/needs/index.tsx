import { Link } from '@tanstack/react-router'
import type { Channel, Failing, Pairing, Status, Undelivered } from '../api/types.gen'
import type { List } from '../api/types'
import { useApi } from '../api/use'
import { ModelState } from '../agents'
import { Granted } from '../approvals/granted'
import { ApprovalList } from '../approvals/list'
import { ChannelCard, troubled } from '../channels'
import { needs } from '../store/app'
import { approvals } from '../store/approvals'
import { useAtom } from '../store/atom'
import { Page, Section } from '../ui/page'
import { Empty, Failed, Skeleton } from '../ui/states'
import { FailingRuns } from './failing'
import { Pairings } from './pairings'
import { UndeliveredAnswers } from './undelivered'

// InboxPage is what goes on only when a person decides: nothing else stands here.
export function InboxPage() {
  const waiting = useAtom(needs)
  const asked = useAtom(approvals)
  const pairings = useApi<List<Pairing>>('/v1/pairings', { again: waiting })
  const undelivered = useApi<List<Undelivered>>('/v1/outbound?limit=20', { every: 15_000 })
  const channels = useApi<List<Channel>>('/v1/channels', { every: 5000 })
  const status = useApi<Status>('/v1/status', { every: 10_000 })
  const failing = useApi<List<Failing>>('/v1/failing', { again: waiting, every: 5000 })
  const error = pairings.error ?? undelivered.error ?? channels.error ?? status.error ?? failing.error
  const loaded = pairings.data && undelivered.data && channels.data && status.data && failing.data ? { undelivered: undelivered.data.items.length } : undefined
  const open = pairings.data?.items.filter(p => p.state === 'open') ?? []
  const bad = channels.data?.items.filter(troubled) ?? []
  const down = status.data?.models.filter(m => m.down) ?? []
  const failed = failing.data?.items ?? []
  const health = status.data && status.data.health !== 'ok' ? status.data : undefined
  return (
    <Page title="Inbox" lead="What goes on only when you decide.">
      {error && <Failed error={error} retry={() => { pairings.reload(); undelivered.reload(); channels.reload(); status.reload(); failing.reload() }} />}
      {!loaded && !error && <Skeleton lines={3} height="6rem" />}
      {loaded && asked.length + failed.length + open.length + bad.length + down.length + loaded.undelivered === 0 && !health && (
        <Empty icon="check" title="Nothing waits for you" act={<Link className="button" to="/">Back to the chat</Link>}>Questions of agents, models that fail, requests of strangers, channels that need a hand and answers that did not arrive will stand here, and be counted in the side bar.</Empty>
      )}
      {health && <Section title="Storage"><p className="card">{health.health}: {health.reason}</p></Section>}
      {asked.length > 0 && <Section title="Questions before something is done"><ApprovalList asked={asked} /></Section>}
      {failed.length > 0 && <Section title="Models that fail"><FailingRuns list={failed} done={failing.reload} /></Section>}
      {open.length > 0 && <Section title="Strangers who want to be let in"><Pairings quiet /></Section>}
      {bad.length > 0 && <Section title="Channels that need a hand"><div className="cards">{bad.map(c => <ChannelCard key={c.name} channel={c} changed={channels.reload} />)}</div></Section>}
      {down.length > 0 && <Section title="Models that cannot be reached"><ul className="models card">{down.map(m => <li key={m.name} className="row wrap"><strong>{m.name}</strong><ModelState model={m} /><span className="soft small">{m.last_error}</span></li>)}</ul></Section>}
      {undelivered.data && undelivered.data.items.length > 0 && <Section title="Answers that did not arrive"><UndeliveredAnswers quiet /></Section>}
      <Granted title={list => <Section title="Allowed in sessions">{list}</Section>} />
    </Page>
  )
}
