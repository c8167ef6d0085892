import { useState } from 'react'
import type { Applied, ChannelField, ChannelKind } from '../api/types'
import { change, Refused, useApply, type Change } from '../setup/apply'
import { Field, SecretInput, TextInput } from '../setup/field'
import { unusedName, type ChannelValue } from '../setup/values'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { Inline } from '../ui/inline'

type Props = { kind: ChannelKind; was?: ChannelValue; taken: string[]; onSaved: (name: string, applied: Applied) => void; onCancel: () => void }

const text = (v: unknown): string => (typeof v === 'string' || typeof v === 'number' ? String(v) : '')

// ChannelForm sets a channel up by the steps of its network, or changes one. A secret that is left empty stays what it is.
export function ChannelForm({ kind, was, taken, onSaved, onCancel }: Props) {
  const [own, setOwn] = useState<string>()
  const name = was?.name ?? own ?? unusedName(kind.name || kind.type, taken)
  const [values, set] = useState<Record<string, string>>(() => Object.fromEntries(kind.fields.map(f => [f.key, f.secret ? '' : text(was?.[f.key])])))
  const valueOf = (f: ChannelField) => (values[f.key] ?? '').trim()
  const path = `channels[${name}]`
  const save = useApply(async () => {
    const secrets = kind.fields.filter(f => f.secret && valueOf(f)).map(f => ({ path: `${path}.${f.key}`, value: valueOf(f) }))
    const plain = kind.fields.filter(f => !f.secret)
    const changes: Change[] = was
      ? plain.filter(f => valueOf(f) !== text(was[f.key])).map(f => (valueOf(f) ? { path: `${path}.${f.key}`, value: valueOf(f) } : { path: `${path}.${f.key}`, remove: true as const }))
      : [{ path, value: { name, type: kind.type, ...Object.fromEntries(plain.filter(valueOf).map(f => [f.key, valueOf(f)])) } }]
    onSaved(name, await change(changes, secrets))
  })
  const field = (f: ChannelField) => (
    <Field key={f.key} label={f.title} needed={f.needed && !(was && f.secret)} help={f.help && <Inline text={f.help} />}>
      {d => f.secret
        ? <SecretInput {...d} value={values[f.key] ?? ''} placeholder={was ? 'Kept as it is; write another one to replace it' : f.placeholder} onChange={v => { set(s => ({ ...s, [f.key]: v })) }} />
        : <TextInput {...d} value={values[f.key] ?? ''} placeholder={f.placeholder} onChange={v => { set(s => ({ ...s, [f.key]: v })) }} />}
    </Field>
  )
  const more = kind.fields.filter(f => !f.needed)
  const whole = name !== '' && kind.fields.every(f => !f.needed || (was && f.secret) || valueOf(f) !== '')
  return (
    <section className="card stack" aria-label={was ? `Change ${was.name}` : `Add ${kind.title}`}>
      <h2>{was ? `Change ${was.name}` : `Add ${kind.title}`}</h2>
      {!was && <ol className="setup-steps">{kind.steps.map((s, i) => <li key={i}><Inline text={s} /></li>)}</ol>}
      {kind.links.length > 0 && <p className="row wrap small">{kind.links.map(l => <a key={l.url} href={l.url} target="_blank" rel="noopener noreferrer">{l.title} ↗</a>)}</p>}
      {!was && kind.manifest && (
        <details><summary className="soft small">The manifest, to paste it yourself</summary>
          <div className="manifest"><Copy text={kind.manifest} label="Copy the manifest" /><pre tabIndex={0}>{kind.manifest}</pre></div>
        </details>
      )}
      <form className="form" onSubmit={e => { e.preventDefault(); if (whole && !save.busy) void save.run() }}>
        {kind.fields.filter(f => f.needed).map(field)}
        {(more.length > 0 || !was) && (
          <details><summary className="soft small">More</summary>
            <div className="form form-more">
              {!was && <Field label="Its name here" help="Letters, digits, - _ and dots. Routes and commands call it by this.">{d => <TextInput {...d} value={name} onChange={setOwn} />}</Field>}
              {more.map(field)}
            </div>
          </details>
        )}
        <Refused act={save} />
        <div className="form-foot"><Button onClick={onCancel}>Cancel</Button><Button kind="primary" type="submit" busy={save.busy} disabled={!whole}>Save</Button></div>
      </form>
    </section>
  )
}
