import { Link } from '@tanstack/react-router'
import { Suspense, useState } from 'react'
import type { Agent, Applied } from '../api/types'
import { Button } from '../ui/button'
import { Caught, lazyPart } from '../ui/lazy'
import { Note, Skeleton } from '../ui/states'

const setup = () => import('../setup/nomodel')
const NoModel = lazyPart(setup, 'NoModel')
const Added = lazyPart(setup, 'Added')

// noModel says that nothing but the built-in responder answers: the gateway has found it where no model is configured.
export const noModel = (agent: Agent | undefined): boolean => agent?.models[0] === 'offline'

// Welcome is a chat in which nothing was said: what can be done here, and examples that work when clicked. Where no model is set up
// it takes one.
export function Welcome({ agent, onPick, onReady }: { agent: Agent | undefined; onPick: (text: string) => void; onReady: () => void }) {
  const [added, set] = useState<{ name: string; applied: Applied }>()
  const name = agent?.name || agent?.id || 'Parley'
  const wait = <Skeleton lines={2} />
  if (!added && noModel(agent)) {
    return <div className="welcome"><Caught><Suspense fallback={wait}><NoModel onSaved={(name, applied) => { set({ name, applied }); onReady() }} /></Suspense></Caught></div>
  }
  return (
    <div className="welcome">
      {added && <Suspense fallback={wait}><Added {...added} answers={agent?.models[0] === added.name} /></Suspense>}
      <h2>What shall we do?</h2>
      <p className="soft">{name} answers here{agent?.models[0] ? ` with ${agent.models[0]}` : ''}. It goes on working when you close this page, and the answer waits for you.</p>
      <div className="row wrap welcome-picks" role="group" aria-label="Examples">
        {['Tell me what you can do.', '/status', '/help'].map(t => <Button key={t} onClick={() => { onPick(t) }}>{t}</Button>)}
      </div>
    </div>
  )
}

// NoModelNote stands in a chat that only the built-in responder answers.
export const NoModelNote = () => <Note kind="warn" act={<Link className="button small" to="/models/new">Add a model</Link>}>No model is set up: the built-in responder answers.</Note>
