import { useId, useState } from 'react'
import type { Applied } from '../api/types'
import type { Channel, PersonItem } from '../api/types.gen'
import { change, Refused, useApply, type Change } from '../setup/apply'
import { Field, TextInput } from '../setup/field'
import type { Account, PersonValue } from '../setup/values'
import { Button, IconButton } from '../ui/button'

const roles = [
  { value: 'guest', text: 'Guest: can talk, with file tools of their own' },
  { value: 'member', text: 'Member: can also use the API and local sessions' },
  { value: 'owner', text: 'Owner: may do everything that you may' },
]

const zones: string[] = Intl.supportedValuesOf('timeZone')
const here = Intl.DateTimeFormat().resolvedOptions().timeZone

type Props = { who?: PersonItem; was?: PersonValue; taken: string[]; channels: Channel[]; onSaved: (name: string, applied: Applied) => void; onCancel: () => void }

// PersonForm adds somebody, or changes who they are. Somebody who is known without the configuration, such as a guest who was let in,
// is named in it by the change, under the same id: it is the same person.
export function PersonForm({ who, was, taken, channels, onSaved, onCancel }: Props) {
  const [id, setId] = useState(who?.id ?? '')
  const [name, setName] = useState(was?.name || who?.name || '')
  const [tz, setTz] = useState(was?.tz ?? who?.tz ?? '')
  const [role, setRole] = useState(was?.role || who?.role || 'guest')
  const [accounts, setAccounts] = useState<Account[]>(() => (was ? was.accounts ?? [] : []).map(a => ({ channel: a.channel, user: String(a.user) })))
  const list = useId()
  const whole = accounts.filter(a => a.channel && a.user.trim()).map(a => ({ channel: a.channel, user: a.user.trim() }))
  const path = `people[${id.trim()}]`
  const save = useApply(async () => { onSaved(name.trim() || id.trim(), await change(was ? changesOf(path, was, { name: name.trim(), tz: tz.trim(), role, accounts: whole }) : [{ path, value: { id: id.trim(), ...(name.trim() ? { name: name.trim() } : {}), ...(role !== 'guest' ? { role } : {}), ...(tz.trim() ? { tz: tz.trim() } : {}), ...(whole.length ? { accounts: whole } : {}) } }])) })
  const clash = !who && taken.includes(id.trim())
  const put = (i: number, a: Partial<Account>) => { setAccounts(all => all.map((x, n) => (n === i ? { ...x, ...a } : x))) }
  const others = who && !was ? who.accounts : who?.accounts.filter(a => !a.configured) ?? []
  const title = who ? `Change ${was?.name || who.name || who.id}` : 'Add a person'
  return (
    <section className="card stack" aria-label={title}>
      <h2>{title}</h2>
      <form className="form" onSubmit={e => { e.preventDefault(); if (id.trim() && !clash && !save.busy) void save.run() }}>
        <div className="form-row">
          <Field label="Id" needed help={clash ? 'Somebody has this id already.' : who ? 'It cannot be changed: sessions and grants go by it.' : 'Short, such as ada: letters, digits, - _ and dots. It cannot be changed later.'}>{d => <TextInput {...d} value={id} readOnly={!!who} autoFocus={!who} aria-invalid={clash || undefined} onChange={setId} />}</Field>
          <Field label="Name" help="What others see. Empty: the id.">{d => <TextInput {...d} value={name} autoFocus={!!who} onChange={setName} />}</Field>
        </div>
        <div className="form-row">
          <Field label="Time zone" help={<>Such as Europe/Berlin; empty: that of the machine. {here && tz !== here && <button type="button" className="as-link" onClick={() => { setTz(here) }}>This browser’s: {here}</button>}</>}>
            {d => <TextInput {...d} value={tz} list={list} placeholder="Europe/Berlin" onChange={setTz} />}
          </Field>
          <Field label="Role" help="A role or an account is changed only with a fresh sign-in.">{d => <select className="field" {...d} value={role} onChange={e => { setRole(e.target.value) }}>{roles.map(r => <option key={r.value} value={r.value}>{r.text}</option>)}</select>}</Field>
        </div>
        <datalist id={list}>{zones.map(z => <option key={z} value={z} />)}</datalist>
        <fieldset className="picks"><legend>Accounts: who they are on each channel, by the network’s own id, never by a name</legend>
          {accounts.map((a, i) => (
            <div key={i} className="account-row">
              <select className="field" aria-label={`Channel of account ${i + 1}`} value={a.channel} onChange={e => { put(i, { channel: e.target.value }) }}>
                {!channels.some(c => c.name === a.channel) && <option value={a.channel}>{a.channel || 'Channel'}</option>}
                {channels.map(c => <option key={c.name} value={c.name}>{c.name}</option>)}
              </select>
              <TextInput value={a.user} aria-label={`Id of the user of account ${i + 1}`} placeholder="123456789" onChange={user => { put(i, { user }) }} />
              <IconButton icon="trash" label={`Remove account ${i + 1}`} onClick={() => { setAccounts(all => all.filter((_, n) => n !== i)) }} />
            </div>
          ))}
          {others.length > 0 && <p className="small soft">Beside these, {others.map(a => `${a.network} ${a.user}`).join(', ')}: let in by a decision, and not by the configuration.</p>}
          {channels.length > 0 ? <div><Button kind="small" icon="plus" onClick={() => { setAccounts(all => [...all, { channel: channels[0]?.name ?? '', user: '' }]) }}>Add an account</Button></div>
            : <p className="small soft">No network is connected yet.</p>}
        </fieldset>
        <Refused act={save} />
        <div className="form-foot"><Button onClick={onCancel}>Cancel</Button><Button kind="primary" type="submit" busy={save.busy} disabled={!id.trim() || clash}>Save</Button></div>
      </form>
    </section>
  )
}

type Edited = { name: string; tz: string; role: string; accounts: Account[] }

// changesOf are the keys that differ, so that a new time zone needs no more than a time zone does.
export function changesOf(path: string, was: PersonValue, now: Edited): Change[] {
  const list: Change[] = []
  const key = (name: 'name' | 'tz' | 'role', old: string) => {
    if (now[name] !== old) list.push(now[name] ? { path: `${path}.${name}`, value: now[name] } : { path: `${path}.${name}`, remove: true })
  }
  key('name', was.name === was.id && !now.name ? '' : was.name ?? '')
  key('tz', was.tz ?? '')
  key('role', was.role || 'guest')
  const plain = (all: Account[]) => JSON.stringify(all.map(a => [a.channel, String(a.user)]))
  if (plain(now.accounts) !== plain(was.accounts ?? [])) list.push(now.accounts.length ? { path: `${path}.accounts`, value: now.accounts } : { path: `${path}.accounts`, remove: true })
  return list
}
