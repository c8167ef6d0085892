import { Link } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { post } from '../api/http'
import type { Applied, ModelTry } from '../api/types'
import type { Config, Status } from '../api/types.gen'
import { useAct, useApi } from '../api/use'
import { change, Done, Refused, useApply, type Change } from '../setup/apply'
import { Field, SecretInput, TextInput } from '../setup/field'
import { valuesOf, type ModelValue } from '../setup/values'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { lasted, shown } from '../ui/format'
import { Inline } from '../ui/inline'
import { Empty, Failed, Note, Skeleton } from '../ui/states'
import { toast } from '../ui/toast'
import { ModelState } from './state'

// ModelList is the models of the configuration: how each is, a test, another key or address, and its end.
export function ModelList({ status }: { status: Status | undefined }) {
  const { data, error, reload } = useApi<Config>('/v1/config')
  const [editing, edit] = useState('')
  const [saved, setSaved] = useState<{ name: string; applied: Applied }>()
  const list = valuesOf(data).models
  if (error && !data) return <Failed error={error} retry={reload} />
  if (!data) return <Skeleton lines={2} height="6rem" />
  if (!list.length) return <Empty icon="agent" title="No model is set up yet" act={<Link className="button" to="/models/new">Add a model</Link>}>What is found in the environment or on this machine is used meanwhile, and else the built-in responder.</Empty>
  return (
    <>
      {saved && <Done applied={saved.applied}>{saved.name} is saved.</Done>}
      <div className="cards">
        {list.map(m => (
          <article key={m.name} className="card stack" aria-label={`Model ${m.name}`}>
            <h3 className="row"><span className="grow truncate">{m.name}</span><ModelState model={status?.models.find(s => s.name === m.name)} /></h3>
            {editing === m.name
              ? <ModelEdit model={m} onCancel={() => { edit('') }} onSaved={applied => { edit(''); setSaved({ name: m.name, applied }); reload() }} />
              : <>
                <dl className="facts small"><dt>Model</dt><dd className="mono">{m.model}</dd>{m.base_url && <><dt>Address</dt><dd className="mono">{m.base_url}</dd></>}</dl>
                <Acts model={m} onEdit={() => { setSaved(undefined); edit(m.name) }} removed={() => { setSaved(undefined); reload() }} />
              </>}
          </article>
        ))}
      </div>
    </>
  )
}

function Acts({ model: m, onEdit, removed }: { model: ModelValue; onEdit: () => void; removed: () => void }) {
  const [tried, set] = useState<ModelTry>()
  const test = useAct(async () => { set(undefined); set(await post<ModelTry>('/v1/models/try', { name: m.name })) })
  const [asking, ask] = useState(false)
  const back = useRef<HTMLButtonElement>(null)
  const remove = useApply(async () => { await change([{ path: `models[${m.name}]`, remove: true }]); toast(`${m.name} is removed.`); ask(false); removed() })
  const shut = () => { ask(false); remove.clear() }
  return (
    <>
      {test.error && <Failed error={test.error} />}
      {tried && (tried.ok ? <p className="small soft" role="status">It answers{tried.answered_ms ? `, after ${lasted(tried.answered_ms)}` : ''}.</p> : <Note kind="bad"><bdi><Inline text={shown(tried.trouble?.sentence ?? 'It does not answer.')} quotes /></bdi></Note>)}
      <div className="row wrap">
        <Button kind="small" icon="again" busy={test.busy} onClick={() => { void test.run() }}>Test</Button>
        <Button kind="small" icon="edit" onClick={onEdit}>Change</Button>
        <Button ref={back} kind="small danger" icon="trash" onClick={() => { ask(true) }}>Remove</Button>
      </div>
      <Dialog open={asking} onClose={shut} back={back} title={`Remove ${m.name}?`} text="It is asked no more. Agents that name it have to name another one first."
        foot={<><Button onClick={shut}>Cancel</Button><Button kind="danger primary" busy={remove.busy} onClick={() => { void remove.run() }}>Remove</Button></>}>
        <Refused act={remove} />
      </Dialog>
    </>
  )
}

// ModelEdit gives a model another key, address or name of the server. A key that is left empty stays, at the address that it was given for.
function ModelEdit({ model: m, onSaved, onCancel }: { model: ModelValue; onSaved: (applied: Applied) => void; onCancel: () => void }) {
  const [key, setKey] = useState('')
  const [model, setModel] = useState(m.model ?? '')
  const [address, setAddress] = useState(m.base_url ?? '')
  const path = `models[${m.name}]`
  const save = useApply(async () => {
    const changes: Change[] = []
    if (model.trim() !== (m.model ?? '')) changes.push({ path: `${path}.model`, value: model.trim() })
    if (address.trim() !== (m.base_url ?? '')) changes.push(address.trim() ? { path: `${path}.base_url`, value: address.trim() } : { path: `${path}.base_url`, remove: true })
    onSaved(await change(changes, key ? [{ path: `${path}.api_key`, value: key }] : []))
  })
  return (
    <form className="form" aria-label={`Change ${m.name}`} onSubmit={e => { e.preventDefault(); if (model.trim() && !save.busy) void save.run() }}>
      <Field label="Model" needed help="The server’s name for it.">{d => <TextInput {...d} value={model} autoFocus onChange={setModel} />}</Field>
      <Field label="Key">{d => <SecretInput {...d} value={key} placeholder="Kept as it is; write another one to replace it" onChange={setKey} />}</Field>
      <Field label="Address" help="A key that is kept is never sent to a new address: give it again with it.">{d => <TextInput {...d} type="url" value={address} onChange={setAddress} />}</Field>
      <Refused act={save} />
      <div className="form-foot"><Button onClick={onCancel}>Cancel</Button><Button kind="primary" type="submit" busy={save.busy} disabled={!model.trim()}>Save</Button></div>
    </form>
  )
}
