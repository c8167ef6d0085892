import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { post, segment } from '../api/http'
import type { Channel, Tested } from '../api/types.gen'
import type { List } from '../api/types'
import { useAct, useApi } from '../api/use'
import { Button } from '../ui/button'
import { Pairings } from '../needs/pairings'
import { UndeliveredAnswers } from '../needs/undelivered'
import { shown } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { Page, Section } from '../ui/page'
import { Empty, Failed, Note, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import { LinkPhone } from './login'
import { hintOf, networkName, sentence, states, troubled } from './say'
import './channels.css'

export { troubled } from './say'

// ChannelsPage is how each connection is and what to do about it, and who asks to be let in.
export function ChannelsPage() {
  const { data, error, reload } = useApi<List<Channel>>('/v1/channels', { every: 5000 })
  const others = data?.items.filter(c => c.type !== 'webchat') ?? []
  return (
    <Page title="Channels" lead="The networks that Parley is connected to, and the people who want to be let in.">
      {error && <Failed error={error} retry={reload} />}
      {!data ? !error && <Skeleton lines={2} height="7rem" /> : <div className="cards">{data.items.map(c => <ChannelCard key={c.name} channel={c} changed={reload} />)}</div>}
      {data && others.length === 0 && (
        <Empty icon="channel" title="No network is connected yet" act={<Link className="button" to="/config">Show the configuration</Link>}>
          Add one to the configuration, for instance <code>channels: [&#123;name: tg, type: telegram, token: "$&#123;TELEGRAM_TOKEN&#125;"&#125;]</code>, and start Parley again.
        </Empty>
      )}
      <Section title="People who want to be let in"><Pairings /></Section>
      <Section title="Answers that did not arrive"><UndeliveredAnswers /></Section>
    </Page>
  )
}

export function ChannelCard({ channel: c, changed }: { channel: Channel; changed: () => void }) {
  const s = states[c.state] ?? { label: c.state, kind: '' }
  const hint = hintOf(c)
  return (
    <article className="card stack" aria-label={`Channel ${c.name}`}>
      <h2 className="row"><Icon name={networkIcon(c.type)} /><span className="grow truncate">{c.name}</span><span className={`badge ${s.kind}`}>{s.label}</span></h2>
      <dl className="facts small"><dt>Network</dt><dd>{networkName(c.type)}</dd>{c.account && <><dt>Account</dt><dd className="mono">{c.account}</dd></>}<dt>Since</dt><dd><Ago at={c.since} /></dd></dl>
      {(c.cause || hint) && c.state !== 'idle' && <Note kind={troubled(c) ? (s.kind === 'bad' ? 'bad' : 'warn') : c.state === 'ready' ? 'warn' : undefined}>{c.cause && <strong className="channel-cause"><bdi>{sentence(shown(c.cause))}</bdi></strong>}{hint && <span className="channel-hint"><Linked text={hint} /></span>}</Note>}
      <Acts channel={c} changed={changed} />
    </article>
  )
}

// Linked is a hint of Parley's with its addresses as links.
function Linked({ text }: { text: string }) {
  return <>{shown(text).split(/(https:\/\/[^\s)]+[^\s).,;])/).map((part, i) => i % 2 ? <a key={i} href={part} target="_blank" rel="noopener noreferrer">{part}</a> : part)}</>
}

// Acts are what can be done with a channel: have it ask its network, and see what it found; link a phone.
function Acts({ channel: c, changed }: { channel: Channel; changed: () => void }) {
  const [tested, set] = useState<Tested>()
  const test = useAct(async () => { set(undefined); set(await post<Tested>(`/v1/channels/${segment(c.name)}/test`)) })
  return (
    <>
      {test.error && <Failed error={test.error} />}
      {tested && (
        <ul className="findings small" aria-label={`What the test of ${c.name} found`} role="status">
          {tested.findings.map((f, i) => <li key={i} className={f.ok ? undefined : 'bad'}><Icon name={f.ok ? 'check' : 'warn'} /><span><bdi>{sentence(shown(f.what))}</bdi>{f.hint && <><br /><span className="soft"><Linked text={f.hint} /></span></>}</span></li>)}
        </ul>
      )}
      <div className="row wrap"><LinkPhone channel={c} changed={changed} /><Button kind="small" icon="again" busy={test.busy} onClick={() => { void test.run() }}>{tested ? 'Test again' : 'Test'}</Button></div>
    </>
  )
}
