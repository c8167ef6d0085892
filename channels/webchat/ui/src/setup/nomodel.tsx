import { useState } from 'react'
import type { Applied } from '../api/types'
import { Button } from '../ui/button'
import { Done } from './apply'
import { ModelForm } from './model'

// NoModel is the first page where no model is set up: it says so, and takes one.
export function NoModel({ onSaved }: { onSaved: (name: string, applied: Applied) => void }) {
  const [open, set] = useState(false)
  return (
    <>
      <h2>{open ? 'Add a model' : 'No model is set up yet'}</h2>
      {open
        ? <ModelForm onCancel={() => { set(false) }} onSaved={onSaved} />
        : <>
          <p className="soft">Until there is one, a built-in responder answers. It shows that everything works, and understands nothing but commands such as <code>/help</code>. To add a model you need a key of a service such as Anthropic or OpenAI, or the address of a server on a machine of yours.</p>
          <div className="row wrap"><Button kind="primary" icon="plus" onClick={() => { set(true) }}>Add a model</Button></div>
        </>}
    </>
  )
}

// Added says that there is a model now. What is written below it answers.
export const Added = ({ name, applied, answers }: { name: string; applied: Applied; answers: boolean }) => <Done applied={applied}>{name} is set up{answers && ' and answers here'}.</Done>
