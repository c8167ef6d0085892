import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { Applied } from '../api/types'
import { Page } from '../ui/page'
import { Done } from './apply'
import { ModelForm } from './model'

// ModelPage adds a model where there may be others.
export function ModelPage() {
  const [added, set] = useState<{ name: string; applied: Applied }>()
  return (
    <Page title="Add a model" lead="A model that agents can ask. The first one answers everywhere; which agent asks which of several stands in the configuration.">
      {added
        ? <><Done applied={added.applied}>{added.name} is set up.</Done><div className="row wrap"><Link className="button primary" to="/">Start a chat</Link><Link className="button" to="/agents">Agents and their models</Link></div></>
        : <div className="card"><ModelForm onSaved={(name, applied) => { set({ name, applied }) }} /></div>}
    </Page>
  )
}
