import { Link, useNavigate } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import type { Applied, List } from '../api/types'
import type { Channel, Config, PersonItem } from '../api/types.gen'
import { useApi } from '../api/use'
import { networkName } from '../channels/say'
import { change, Done, Refused, useApply } from '../setup/apply'
import { valuesOf } from '../setup/values'
import { needs, signed } from '../store/app'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { shown } from '../ui/format'
import { Icon, networkIcon } from '../ui/icon'
import { Page } from '../ui/page'
import { Empty, Failed, Note, Skeleton } from '../ui/states'
import { toast } from '../ui/toast'
import { PersonForm } from './form'
import './people.css'

type Search = { add?: string; edit?: string }

// PeoplePage is who is known, by which accounts, and what each may do.
export function PeoplePage({ search }: { search: Search }) {
  const go = useNavigate()
  const waiting = useAtom(needs).pairings
  const people = useApi<List<PersonItem>>('/v1/people?limit=500', { again: waiting })
  const channels = useApi<List<Channel>>('/v1/channels')
  const config = useApi<Config>('/v1/config')
  const [saved, setSaved] = useState<{ name: string; applied: Applied }>()
  const values = valuesOf(config.data).people
  const list = people.data?.items ?? []
  const who = search.edit ? list.find(p => p.id === search.edit) : undefined
  const error = people.error ?? channels.error ?? config.error
  const ready = people.data && channels.data && config.data
  const again = () => { people.reload(); channels.reload(); config.reload() }
  const shut = () => { void go({ to: '/people', search: {}, replace: true }) }
  return (
    <Page title="People" lead="Who is known here, by which accounts, and what each of them may do." acts={<Link className="button primary" to="/people" search={{ add: 'person' }}><Icon name="plus" />Add a person</Link>}>
      {error && <Failed error={error} retry={again} />}
      {waiting > 0 && <Note act={<Link className="button small" to="/inbox">Decide</Link>}>{waiting === 1 ? 'One stranger wants' : `${waiting} strangers want`} to be let in.</Note>}
      {saved && <Done applied={saved.applied}>{saved.name} is saved.</Done>}
      {ready && (search.add ?? who) && (
        <PersonForm key={`${search.add} ${search.edit}`} who={who} was={values.find(v => v.id === who?.id)} taken={list.map(p => p.id)} channels={channels.data?.items.filter(c => c.type !== 'webchat') ?? []}
          onSaved={(name, applied) => { setSaved({ name, applied }); shut(); again() }} onCancel={shut} />
      )}
      {!people.data ? !error && <Skeleton lines={3} height="5rem" /> : list.length === 0
        ? !search.add && <Empty icon="person" title="Nobody is known yet" act={<Link className="button" to="/people" search={{ add: 'person' }}>Add yourself</Link>}>You speak here as the owner without a name. Add yourself, and your time zone and your accounts on other networks are known.</Empty>
        : <div className="cards">{list.map(p => <PersonCard key={p.id} person={p} removed={() => { setSaved(undefined); again() }} />)}</div>}
    </Page>
  )
}

const kinds: Record<string, string> = { owner: 'accent', member: 'good' }

function PersonCard({ person: p, removed }: { person: PersonItem; removed: () => void }) {
  const s = useAtom(signed)
  const me = s.state === 'in' && s.me.person.id === p.id
  const name = shown(p.name || p.id)
  return (
    <article className="card stack" aria-label={`Person ${p.id}`}>
      <h2 className="row"><Icon name="person" /><bdi className="grow truncate">{name}</bdi>{me && <span className="badge">you</span>}<span className={`badge ${kinds[p.role] ?? ''}`}>{p.role}</span></h2>
      <dl className="facts small">
        <dt>Id</dt><dd className="mono">{p.id}</dd>
        <dt>Time zone</dt><dd>{p.tz || <span className="faint">that of the machine</span>}</dd>
        <dt>Accounts</dt><dd>{p.accounts.length === 0 ? <span className="faint">none</span> : <ul className="accounts">{p.accounts.map(a => <li key={`${a.network} ${a.account} ${a.user}`}><Icon name={networkIcon(a.network)} /><span>{networkName(a.network)} <code>{a.user}</code>{a.name && <> <bdi className="soft">“{shown(a.name)}”</bdi></>}</span></li>)}</ul>}</dd>
      </dl>
      <div className="row wrap">
        <Link className="button small" to="/people" search={{ edit: p.id }}><Icon name="edit" />Change</Link>
        {p.configured && <RemovePerson id={p.id} name={name} removed={removed} />}
      </div>
    </article>
  )
}

// RemovePerson takes somebody out of the configuration. What they said stays.
function RemovePerson({ id, name, removed }: { id: string; name: string; removed: () => void }) {
  const [asking, ask] = useState(false)
  const back = useRef<HTMLButtonElement>(null)
  const remove = useApply(async () => { await change([{ path: `people[${id}]`, remove: true }]); toast(`${name} is removed.`); ask(false); removed() })
  const shut = () => { ask(false); remove.clear() }
  return (
    <>
      <Button ref={back} kind="small danger" icon="trash" onClick={() => { ask(true) }}>Remove</Button>
      <Dialog open={asking} onClose={shut} back={back} title={`Remove ${name}?`} text="They are taken out of the configuration with their role, and their accounts are strangers again. What they said and what was answered stays."
        foot={<><Button onClick={shut}>Cancel</Button><Button kind="danger primary" busy={remove.busy} onClick={() => { void remove.run() }}>Remove</Button></>}>
        <Refused act={remove} />
      </Dialog>
    </>
  )
}
