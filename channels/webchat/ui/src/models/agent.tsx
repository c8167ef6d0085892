import type { Agent } from '../api/types'
import { shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Menu, MenuChoice, MenuLabel } from '../ui/menu'
import './models.css'

// AgentPicker says whom a new chat goes to, and chooses another.
export function AgentPicker({ agents, agent, onChange }: { agents: readonly Agent[]; agent: Agent | undefined; onChange: (id: string) => void }) {
  if (!agent) return null
  const name = (a: Agent) => shown(a.name || a.id)
  if (agents.length === 1) return null // the header names it
  return (
    <Menu label="Agent" sheet trigger={<button type="button" className="button quiet small picker"><Icon name="agent" /><span className="sr-only">Agent: </span><span className="truncate">{name(agent)}</span><Icon name="down" /></button>}>
      <MenuLabel>Who answers this chat</MenuLabel>
      <MenuChoice value={agent.id} onChange={onChange} choices={agents.map(a => ({ value: a.id, label: <span className="picker-model"><span className="truncate">{name(a)}</span>{a.models[0] && <span className="small faint truncate">{shown(a.models[0])}{a.default ? ' · the default agent' : ''}</span>}</span> }))} />
    </Menu>
  )
}
