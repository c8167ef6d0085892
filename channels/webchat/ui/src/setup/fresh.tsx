import { useId, useState } from 'react'
import { Problem } from '../api/http'
import { useAct } from '../api/use'
import { NotFound } from '../shell/signin'
import { renewSignIn } from '../store/app'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Failed } from '../ui/states'
import { SecretInput } from './field'
import './setup.css'

const command = 'parley webchat'

// codeOf is the code of a link, or one that was typed by itself.
export const codeOf = (text: string): string => /#code=([\w-]+)/.exec(text)?.[1] ?? text.trim()

// Fresh takes a code of the machine where something is refused without one, and goes on with it. It stands outside of forms' own
// submit: Enter in it does not send the form around it.
export function Fresh({ refused, busy, done }: { refused: string; busy: boolean; done: () => void }) {
  const [text, set] = useState('')
  const [given, give] = useState(false)
  const id = useId()
  const act = useAct(async () => {
    try { await renewSignIn(codeOf(text)) } catch (err) {
      if (err instanceof Problem && err.status === 401) throw new Error('This code is not right, was used, or is older than ten minutes. The command prints another one.')
      throw err
    }
    set('')
    give(true)
    done()
  })
  const enter = () => { if (text.trim() && !act.busy) void act.run() }
  return (
    <section className="card stack fresh" aria-labelledby={id}>
      <h3 id={id} className="row"><Icon name="audit" />Confirm that it is you</h3>
      <p className="soft">
        <bdi>{shown((refused.split(': ')[0] ?? '').replace(/\.$/, ''))}</bdi>. What reaches the machine, or decides who may do what, is changed only within ten minutes of
        a sign-in with a code from the machine itself. Nothing that you wrote here is lost.
      </p>
      <p>On the machine where Parley runs, run <code>{command}</code><Copy text={command} label="Copy the command" /> and paste the link that it prints:</p>
      <NotFound />
      {act.error && <Failed error={act.error} />}
      {!act.error && given && !busy && <Failed error={new Error('That code was asked for by a browser. Only one that the command prints on the machine counts.')} />}
      <div className="fresh-code">
        <label className="label grow">Link or code
          <SecretInput value={text} onChange={set} autoFocus onKeyDown={e => { if (e.key === 'Enter') { e.preventDefault(); enter() } }} /></label>
        <Button kind="primary" busy={act.busy || busy} disabled={!text.trim()} onClick={enter}>Confirm and go on</Button>
      </div>
    </section>
  )
}
