import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { post, segment } from '../api/http'
import type { Channel, Config, Tested } from '../api/types.gen'
import type { Applied, ChannelKind, List } from '../api/types'
import { useAct, useApi } from '../api/use'
import { change, Done, Refused, useApply } from '../setup/apply'
import { valuesOf } from '../setup/values'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { Menu, MenuItem } from '../ui/menu'
import { toast } from '../ui/toast'
import { Pairings } from '../needs/pairings'
import { UndeliveredAnswers } from '../needs/undelivered'
import { shown } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { Inline } from '../ui/inline'
import { Page, Section } from '../ui/page'
import { Empty, Failed, Note, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import { ChannelForm } from './form'
import { LinkPhone } from './login'
import { hintOf, networkName, sentence, states, troubled } from './say'
import './channels.css'

export { troubled } from './say'

type Search = { add?: string; edit?: string }

// ChannelsPage is how each connection is and what to do about it, adds and changes them, and shows who asks to be let in.
export function ChannelsPage({ search }: { search: Search }) {
  const go = useNavigate()
  const { data, error, reload } = useApi<List<Channel>>('/v1/channels', { every: 5000 })
  const kinds = useApi<List<ChannelKind>>('/v1/channels/kinds')
  const config = useApi<Config>('/v1/config')
  const [saved, setSaved] = useState<{ name: string; kind: ChannelKind | undefined; applied: Applied; fresh: boolean }>()
  const values = valuesOf(config.data).channels
  const shut = () => { void go({ to: '/channels', search: {}, replace: true }) }
  const was = search.edit ? values.find(v => v.name === search.edit) : undefined
  const kind = kinds.data?.items.find(k => k.type === (search.edit ? was?.type : search.add))
  const done = (name: string, applied: Applied) => {
    setSaved({ name, applied, kind, fresh: search.edit === undefined })
    shut()
    reload()
    config.reload()
  }
  const failed = error ?? kinds.error ?? config.error
  const others = data?.items.filter(c => c.type !== 'webchat') ?? []
  const list = kinds.data?.items ?? []
  return (
    <Page title="Channels" lead="The networks that Parley is connected to, and the people who want to be let in." acts={<AddChannel kinds={list} />}>
      {failed && <Failed error={failed} retry={() => { reload(); kinds.reload(); config.reload() }} />}
      {saved && (
        <Done applied={saved.applied} more={saved.fresh && saved.kind && saved.kind.after.length > 0 && <ul className="setup-steps">{saved.kind.after.map((t, i) => <li key={i}><Inline text={t} /></li>)}</ul>}>
          {saved.name} is saved.{saved.fresh && ' Test it below.'}
        </Done>
      )}
      {kind && config.data && (search.add ?? was) && <ChannelForm key={`${search.add} ${search.edit}`} kind={kind} was={was} taken={values.map(v => v.name)} onSaved={done} onCancel={shut} />}
      {!data ? !error && <Skeleton lines={2} height="7rem" /> : (
        <div className="cards">{data.items.map(c => (
          <ChannelCard key={c.name} channel={c} changed={reload} fresh={saved?.fresh && saved.name === c.name}
            edit={list.some(k => k.type === c.type) && values.some(v => v.name === c.name) ? { removed: () => { setSaved(undefined); reload(); config.reload() } } : undefined} />
        ))}</div>
      )}
      {data && others.length === 0 && !kind && list.length > 0 && (
        <Empty icon="channel" title="No network is connected yet" act={<div className="row wrap">{list.map(k => <Link key={k.type} className="button" to="/channels" search={{ add: k.type }}><Icon name={networkIcon(k.type)} />{k.title}</Link>)}</div>}>
          Connect one, and Parley answers there too. What it needs is shown step by step.
        </Empty>
      )}
      <Section title="People who want to be let in"><Pairings /></Section>
      <Section title="Answers that did not arrive"><UndeliveredAnswers /></Section>
    </Page>
  )
}

// AddChannel chooses the network of a new channel.
function AddChannel({ kinds }: { kinds: readonly ChannelKind[] }) {
  const go = useNavigate()
  return (
    <Menu label="Add a channel" align="end" trigger={<button type="button" className="button primary" disabled={!kinds.length}><Icon name="plus" />Add a channel</button>}>
      {kinds.map(k => <MenuItem key={k.type} icon={networkIcon(k.type)} onSelect={() => { void go({ to: '/channels', search: { add: k.type } }) }}>{k.title}</MenuItem>)}
    </Menu>
  )
}

// ChannelCard is how one is. A fresh one was just added: it is looked at, and a phone is linked at once.
export function ChannelCard({ channel: c, changed, fresh, edit }: { channel: Channel; changed: () => void; fresh?: boolean; edit?: { removed: () => void } }) {
  const s = states[c.state] ?? { label: c.state, kind: '' }
  const hint = hintOf(c)
  const card = useRef<HTMLElement>(null)
  useEffect(() => { if (fresh) card.current?.focus() }, [fresh])
  return (
    <article className="card stack" aria-label={`Channel ${c.name}`} ref={card} tabIndex={-1}>
      <h2 className="row"><Icon name={networkIcon(c.type)} /><span className="grow truncate">{c.name}</span><span className={`badge ${s.kind}`}>{s.label}</span></h2>
      <dl className="facts small"><dt>Network</dt><dd>{networkName(c.type)}</dd>{c.account && <><dt>Account</dt><dd className="mono">{c.account}</dd></>}<dt>Since</dt><dd><Ago at={c.since} /></dd></dl>
      {(c.cause || hint) && c.state !== 'idle' && <Note kind={troubled(c) ? (s.kind === 'bad' ? 'bad' : 'warn') : c.state === 'ready' ? 'warn' : undefined}>{c.cause && <strong className="channel-cause"><bdi>{sentence(shown(c.cause))}</bdi></strong>}{hint && <span className="channel-hint"><Linked text={hint} /></span>}</Note>}
      <Acts channel={c} changed={changed} fresh={fresh} edit={edit} />
    </article>
  )
}

// Linked is a hint of Parley's with its addresses as links.
function Linked({ text }: { text: string }) {
  return <>{shown(text).split(/(https:\/\/[^\s)]+[^\s).,;])/).map((part, i) => i % 2 ? <a key={i} href={part} target="_blank" rel="noopener noreferrer">{part}</a> : part)}</>
}

// Acts are what can be done with a channel: have it ask its network, and see what it found; link a phone; change and remove it.
function Acts({ channel: c, changed, fresh, edit }: { channel: Channel; changed: () => void; fresh?: boolean; edit?: { removed: () => void } }) {
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
      <div className="row wrap">
        <LinkPhone channel={c} changed={changed} begin={fresh} />
        <Button kind="small" icon="again" busy={test.busy} onClick={() => { void test.run() }}>{tested ? 'Test again' : 'Test'}</Button>
        {edit && <><Link className="button small" to="/channels" search={{ edit: c.name }}><Icon name="edit" />Change</Link><RemoveChannel name={c.name} removed={edit.removed} /></>}
      </div>
    </>
  )
}

// RemoveChannel takes a channel out of the configuration, once it is said that this is meant.
function RemoveChannel({ name, removed }: { name: string; removed: () => void }) {
  const [asking, ask] = useState(false)
  const back = useRef<HTMLButtonElement>(null)
  const remove = useApply(async () => { await change([{ path: `channels[${name}]`, remove: true }]); toast(`${name} is removed.`); ask(false); removed() })
  const shut = () => { ask(false); remove.clear() }
  return (
    <>
      <Button ref={back} kind="small danger" icon="trash" onClick={() => { ask(true) }}>Remove</Button>
      <Dialog open={asking} onClose={shut} back={back} title={`Remove ${name}?`} text="Parley leaves the network and answers nobody there. Its chats can still be read here. To have it back, add it again with its token."
        foot={<><Button onClick={shut}>Cancel</Button><Button kind="danger primary" busy={remove.busy} onClick={() => { void remove.run() }}>Remove</Button></>}>
        <Refused act={remove} />
      </Dialog>
    </>
  )
}
