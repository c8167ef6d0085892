import type { ReactElement } from 'react'
import { useState } from 'react'
import { call, segment } from '../api/http'
import type { ModelChoice, ModelsView } from '../api/types.gen'
import { useApi } from '../api/use'
import { shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Menu, MenuChoice, MenuLabel, MenuLine } from '../ui/menu'
import { toast } from '../ui/toast'
import './models.css'

// Choice is what a chat is to be asked with; what is left out is the agent's and the model's own.
export type Choice = { model?: string; think?: string }

const efforts: Record<string, string> = { off: 'Off', minimal: 'Minimal', low: 'Low', medium: 'Medium', high: 'High', xhigh: 'Very high' }
const own = 'default'

// ModelPicker chooses the model of a chat and how hard it thinks: it shows what is in force.
export function ModelPicker({ session, model, think }: { session: string; model: string | undefined; think: string | undefined }) {
  if (!model) return null
  return <SessionModels session={session} trigger={<Trigger model={model} think={think} />} />
}

// SessionModels opens the choice of a session's model under any trigger, such as "Use another model"; picked is called when another
// one is in force.
export function SessionModels({ session, trigger, picked }: { session: string; trigger: ReactElement; picked?: (v: ModelsView) => void }) {
  const set = (c: Choice) => {
    call<ModelsView>(`/v1/sessions/${segment(session)}/models`, { method: 'PATCH', body: c }).then(v => {
      if (v.running) toast('The answer that is being written stays as it is. This holds from the next message.')
      picked?.(v)
    }, (err: unknown) => { toast((err as Error).message) })
  }
  return <Choose path={`/v1/sessions/${segment(session)}/models`} trigger={trigger} set={set} />
}

// NewModelPicker chooses for a chat that begins with its first message.
export function NewModelPicker({ agent, model, choice, onChoice }: { agent: string; model: string | undefined; choice: Choice; onChoice: (c: Choice) => void }) {
  if (!model) return null
  return <Choose path={`/v1/agents/${segment(agent)}/models`} picked={choice} trigger={<Trigger model={choice.model || model} think={choice.think} />}
    set={c => { onChoice({ model: c.model === own ? undefined : c.model ?? choice.model, think: c.think === own ? undefined : c.think ?? choice.think }) }} />
}

function Trigger({ model, think, ...rest }: { model: string; think: string | undefined }) {
  return (
    <button type="button" className="button quiet small picker" {...rest}>
      <span className="sr-only">Model: </span><span className="truncate">{shown(model)}</span>{think && <span className="faint">{(efforts[think] ?? think).toLowerCase()}</span>}<Icon name="down" />
    </button>
  )
}

// Choose is the menu. What is offered is read when it is opened, since a model may have failed meanwhile.
function Choose({ path, picked, trigger, set }: { path: string; picked?: Choice; trigger: ReactElement; set: (c: Choice) => void }) {
  const [open, opened] = useState(false)
  return <Menu label="Model and thinking" sheet onOpen={opened} trigger={trigger}>{open && <Offered path={path} picked={picked} set={set} />}</Menu>
}

function Offered({ path, picked, set }: { path: string; picked?: Choice; set: (c: Choice) => void }) {
  const { data, error } = useApi<ModelsView>(path)
  if (error) return <p className="picker-why soft" role="alert">{error.message}</p>
  if (!data) return <p className="picker-why soft" role="status">Loading…</p>
  const now = picked?.model ? data.items.find(m => m.name === picked.model) : data.items.find(m => m.current)
  const levels = picked?.model && now ? (now.offline || now.thinks === 'no' ? [] : Object.keys(efforts)) : data.efforts
  const think = (picked ? picked.think : data.think) ?? own
  return (
    <>
      <MenuLabel>Model</MenuLabel>
      <MenuChoice value={now?.name ?? ''} disabled={!data.may_change} onChange={name => { set({ model: data.items.find(m => m.name === name)?.default ? own : name }) }}
        choices={data.items.map(m => ({ value: m.name, label: <Named model={m} /> }))} />
      <p className="picker-why small soft">{why(data, now, picked)}</p>
      {levels.length > 0 && (
        <>
          <MenuLine />
          <MenuLabel>Thinking</MenuLabel>
          <MenuChoice value={think} disabled={!data.may_change} onChange={level => { set({ think: level }) }} choices={[{ value: own, label: 'As the model does' }, ...levels.map(l => ({ value: l, label: efforts[l] ?? l }))]} />
        </>
      )}
      {data.running && <p className="picker-why small soft">An answer is being written. A change holds from the next message.</p>}
      {!data.may_change && <p className="picker-why small soft">Only members and owners change this.</p>}
    </>
  )
}

function Named({ model: m }: { model: ModelChoice }) {
  const more = [m.model !== m.name && m.model, m.default && 'the agent’s own', m.down && 'unavailable, retrying'].filter(Boolean).join(' · ')
  return <span className="picker-model"><span className="truncate">{shown(m.name)}</span>{more && <span className="small faint truncate">{shown(more)}</span>}</span>
}

// why is what is in force, and for what reason.
function why(v: ModelsView, now: ModelChoice | undefined, picked: Choice | undefined): string {
  if (!now) return 'No model is configured.'
  const next = v.chain.find(n => n !== now.name && !v.items.find(m => m.name === n)?.down)
  if (now.down) return next ? `${now.name} does not answer at the moment, so ${next} is asked.` : `${now.name} does not answer at the moment. It is tried again.`
  if (v.gone) return `The model that was chosen here is not configured any more, so ${now.name} is asked.`
  return (picked ? picked.model : v.chosen) ? `${now.name} was chosen for this chat.` : `${now.name} is what this agent asks by itself.`
}
