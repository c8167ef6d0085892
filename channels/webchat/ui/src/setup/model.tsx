import { useEffect, useId, useMemo, useRef, useState, type RefObject } from 'react'
import { post } from '../api/http'
import type { Applied, List, ModelTry, Provider } from '../api/types'
import type { Config } from '../api/types.gen'
import { useAct, useApi } from '../api/use'
import { Button } from '../ui/button'
import { lasted, number, shown } from '../ui/format'
import { Inline } from '../ui/inline'
import { Failed, Note, Skeleton } from '../ui/states'
import { change, Refused, useApply } from './apply'
import { Field, SecretInput, TextInput } from './field'
import { unusedName, valuesOf } from './values'

type Found = ModelTry['models']

// ModelForm adds a model: who serves it, a key or an address, a test that names its models, one of them.
export function ModelForm({ onSaved, onCancel }: { onSaved: (name: string, applied: Applied) => void; onCancel?: () => void }) {
  const providers = useApi<List<Provider>>('/v1/providers')
  const config = useApi<Config>('/v1/config')
  const [id, choose] = useState('')
  const provider = providers.data?.items.find(p => p.id === id)
  const top = useRef<HTMLFieldSetElement>(null)
  useEffect(() => { top.current?.querySelector('input')?.focus() }, [providers.data !== undefined])
  if (providers.error && !providers.data) return <Failed error={providers.error} retry={providers.reload} />
  if (!providers.data) return <Skeleton lines={3} />
  const group = (label: string, list: Provider[]) => list.length > 0 && (
    <div className="picks-row" role="group" aria-label={label}>{list.map(p => <label key={p.id} className="pick"><input type="radio" name="provider" checked={p.id === id} onChange={() => { choose(p.id) }} />{p.name.charAt(0).toUpperCase() + p.name.slice(1)}</label>)}</div>
  )
  return (
    <div className="form">
      <fieldset className="picks" ref={top}><legend>Who serves the model?</legend>
        {group('Services', providers.data.items.filter(p => !p.local))}
        {group('On your own machines', providers.data.items.filter(p => p.local))}
      </fieldset>
      {provider ? <Access key={provider.id} provider={provider} taken={valuesOf(config.data).models.map(m => m.name)} onSaved={onSaved} onCancel={onCancel} />
        : onCancel && <div className="form-foot"><Button onClick={onCancel}>Cancel</Button></div>}
    </div>
  )
}

// Unanswered says that what was to be saved does not answer; why stands in what was tried.
class Unanswered extends Error {}

// Access is how one provider is reached, and which of its models is taken.
function Access({ provider: p, taken, onSaved, onCancel }: { provider: Provider; taken: string[]; onSaved: (name: string, applied: Applied) => void; onCancel?: () => void }) {
  const [key, setKey] = useState('')
  const [address, setAddress] = useState(p.base_url)
  const [model, setModel] = useState('')
  const [own, setOwn] = useState<string>() // a name that was typed
  const name = own ?? unusedName(p.model || p.id, taken)
  const [tried, setTried] = useState<{ of: string; answer: ModelTry }>()
  const asked = `${address.trim()}\n${key}`
  const answer = tried?.of === asked ? tried.answer : undefined // what was found for other words is over
  const field = useRef<HTMLInputElement>(null)
  const attempt = async () => {
    const got = await post<ModelTry>('/v1/models/try', { provider: p.id, base_url: address.trim(), ...(key ? { api_key: key } : {}), ...(model.trim() ? { model: model.trim() } : {}) })
    const mended = got.base_url || address.trim()
    setAddress(mended)
    setTried({ of: `${mended}\n${key}`, answer: got })
    return { ...got, base_url: mended }
  }
  const anyway = useRef(false) // it is saved although it does not answer
  const test = useAct(async () => {
    save.clear()
    const got = await attempt()
    if (got.ok && !model) setModel(got.suggested ?? '')
    if (got.ok) field.current?.focus()
  })
  const save = useApply(async () => {
    const got = anyway.current ? undefined : await attempt()
    if (got && !got.ok) throw new Unanswered()
    const window = (got ?? answer)?.models.find(m => m.id === model.trim())?.context_window || p.context_window
    const base = got?.base_url ?? address.trim()
    const value = { name, api: p.api, ...(base ? { base_url: base } : {}), model: model.trim(), ...(window ? { context_window: window } : {}) }
    onSaved(name, await change([{ path: `models[${name}]`, value }], key ? [{ path: `models[${name}].api_key`, value: key }] : []))
  })
  const reachable = (!p.needs_key || key !== '') && (address.trim() !== '' || (!p.local && p.base_url !== ''))
  const found = answer?.ok ? answer.models : undefined
  const unanswered = save.error instanceof Unanswered
  const trouble = answer && !answer.ok && (
    <Note kind="bad" act={unanswered && <Button kind="small" busy={save.busy} onClick={() => { anyway.current = true; void save.run() }}>Save all the same</Button>}>
      <bdi><Inline text={shown(answer.trouble?.sentence ?? `${p.name} does not answer.`)} quotes /></bdi>
    </Note>
  )
  const where = <Field label={p.local ? 'Address of the server' : 'Address'} needed help={p.local ? 'As Parley’s machine reaches it. A missing /v1 is added.' : undefined}>
    {d => <TextInput type="url" inputMode="url" {...d} value={address} placeholder={p.example || 'http://127.0.0.1:11434/v1'} onChange={setAddress} />}
  </Field>
  const keyed = (p.needs_key || !p.local || !!p.key_hint) && (
    <Field label={p.needs_key ? 'Key' : 'Key, if the server wants one'} needed={p.needs_key} help={p.key_url ? <Inline text={`You get one at [${bare(p.key_url)}](${p.key_url}). It is kept in a file of its own that only Parley’s user can read.`} /> : undefined}>
      {d => <SecretInput {...d} value={key} placeholder={p.key_hint} onChange={setKey} />}
    </Field>
  )
  return (
    <form className="form" aria-label={`Set up ${p.name}`} onSubmit={e => { e.preventDefault(); if (!model.trim()) { if (reachable && !test.busy) void test.run() } else if (!save.busy) void save.run() }}>
      {p.note && <p className="soft small"><Inline text={p.note} /></p>}
      {(p.local || !p.base_url) && where}
      {keyed}
      <div className="row wrap">
        <Button busy={test.busy} disabled={!reachable} onClick={() => { void test.run() }}>{answer ? 'Test again' : 'Test'}</Button>
        {answer?.ok && <span className="small soft" role="status">{p.name} answers{answer.answered_ms ? ` after ${lasted(answer.answered_ms)}` : ''}{found && found.length > 0 ? ` and offers ${number(found.length)} ${found.length === 1 ? 'model' : 'models'}` : ''}.</span>}
      </div>
      {test.error && <Failed error={test.error} />}
      {!unanswered && trouble}
      <ModelField models={found} value={model} onChange={setModel} input={field} />
      <details><summary className="soft small">More</summary>
        <div className="form form-more">
          {!p.local && p.base_url !== '' && where}
          <Field label="Its name here" help="In the configuration, in /model and under answers. Without spaces.">
            {d => <TextInput {...d} value={name} onChange={v => { setOwn(v.replace(/\s/g, '-')) }} />}
          </Field>
        </div>
      </details>
      {unanswered ? trouble : <Refused act={save} />}
      <div className="form-foot">
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button kind="primary" type="submit" busy={save.busy} disabled={!reachable || !model.trim() || !name.trim()}>Save</Button>
      </div>
    </form>
  )
}

const bare = (url: string): string => url.replace(/^https?:\/\/(www\.)?/, '').replace(/\/$/, '')

const most = 200 // names that are drawn: who wants another types more of it

// ModelField is the model's name: typed, or found by some letters of it among those that the server has.
function ModelField({ models, value, onChange, input }: { models: Found | undefined; value: string; onChange: (model: string) => void; input: RefObject<HTMLInputElement | null> }) {
  const [typed, setTyped] = useState('') // the letters that are looked for; empty: all are shown
  const [at, setAt] = useState(-1)
  const [shut, setShut] = useState(false) // one was picked
  const list = useRef<HTMLUListElement>(null)
  const id = useId()
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean)
  const found = useMemo(() => (models ?? []).filter(m => words.every(w => m.id.toLowerCase().includes(w))), [models, typed]) // eslint-disable-line react-hooks/exhaustive-deps -- words are of typed
  const drawn = found.slice(0, most)
  const now = Math.min(at, drawn.length - 1)
  useEffect(() => { if (now >= 0) list.current?.children[now]?.scrollIntoView({ block: 'nearest' }) }, [now])
  const pick = (model: string) => { onChange(model); setTyped(''); setAt(-1); setShut(true); input.current?.focus() }
  const open = drawn.length > 0 && !shut
  return (
    <div className="form-field">
      <label className="label" htmlFor={`${id}-field`}>Model</label>
      <input ref={input} id={`${id}-field`} className="field" role="combobox" aria-expanded={open} aria-controls={open ? id : undefined} aria-autocomplete="list" aria-activedescendant={open && now >= 0 ? `${id}-${now}` : undefined}
        autoComplete="off" autoCapitalize="none" spellCheck={false} value={value} placeholder={models?.length ? 'Choose below, or type some letters of its name' : 'The server’s name for it'}
        onChange={e => { onChange(e.target.value); setTyped(e.target.value); setAt(-1); setShut(false) }} onClick={() => { setShut(false) }} onKeyDown={e => {
          if (e.key === 'ArrowDown' && drawn.length) { e.preventDefault(); setShut(false); setAt((now + 1) % drawn.length) }
          if (e.key === 'ArrowUp' && open) { e.preventDefault(); setAt((now - 1 + drawn.length) % drawn.length) }
          if (e.key === 'Escape' && open) { e.preventDefault(); setShut(true); setAt(-1) }
          if (e.key === 'Enter' && open && now >= 0) { e.preventDefault(); pick(drawn[now]?.id ?? '') }
        }} />
      {open && (
        <ul className="model-list" role="listbox" id={id} aria-label="Models of this server" tabIndex={-1} ref={list}>
          {drawn.map((m, i) => (
            <li key={m.id} id={`${id}-${i}`} role="option" aria-selected={m.id === value} className="menu-item" data-highlighted={i === now || undefined} onPointerDown={e => { e.preventDefault(); pick(m.id) }}>
              <span className="grow truncate">{shown(m.id)}</span>{m.context_window ? <span className="faint small num">{number(m.context_window)} tokens</span> : null}
            </li>
          ))}
        </ul>
      )}
      {models && models.length > 0 && !shut && <p className="small soft" role="status">{found.length === 0 ? 'The server names no such model. It is tried all the same.' : found.length > most ? `${number(found.length)} models fit. Type more of the name.` : typed ? `${number(found.length)} of ${number(models.length)} fit.` : ''}</p>}
      {models?.length === 0 && <p className="small soft">This server does not say which models it has. Type the name of one.</p>}
    </div>
  )
}
