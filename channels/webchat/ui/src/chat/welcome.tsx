import type { Agent } from '../api/types'
import { Button } from '../ui/button'

// Welcome is a chat in which nothing was said: what can be done here, and examples that work when clicked.
export function Welcome({ agent, onPick }: { agent: Agent | undefined; onPick: (text: string) => void }) {
  const name = agent?.name || agent?.id || 'Parley'
  return (
    <div className="welcome">
      <h2>What shall we do?</h2>
      <p className="soft">{name} answers here{agent?.models[0] ? ` with ${agent.models[0]}` : ''}. It goes on working when you close this page, and the answer waits for you.</p>
      <div className="row wrap welcome-picks" role="group" aria-label="Examples">
        {['Tell me what you can do.', '/status', '/help'].map(t => <Button key={t} onClick={() => { onPick(t) }}>{t}</Button>)}
      </div>
    </div>
  )
}
