import { useState } from 'react'
import { Problem } from '../api/http'
import { invitation, signed, signIn, who } from '../store/app'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { Icon } from '../ui/icon'
import { useTitle } from '../ui/page'
import { Note } from '../ui/states'

const command = 'parley webchat'

// NotFound is for who built the program and did not install it. Its path is not shown here: strangers see this page.
export function NotFound() {
  return <p className="soft">If the shell says “command not found”, begin with the program’s path, such as <code>bin/parley</code>, or install it with <code>make install</code>.</p>
}

// SignIn is what somebody sees who is not signed in: with a code from the link one click, without one how to get a link.
export function SignIn() {
  const code = useAtom(invitation)
  const s = useAtom(signed)
  const [state, set] = useState<{ busy: boolean; problem?: string; of?: string; used?: boolean }>({ busy: false })
  useTitle('Sign in')
  const enter = async () => {
    set({ busy: true })
    try {
      await signIn()
    } catch (err) {
      const used = err instanceof Problem && err.status < 500 && err.status !== 429
      set({ busy: false, used, of: code, problem: used ? 'This link was used before, or is older than ten minutes. Each link signs in one browser, once.' : (err as Error).message })
    }
  }
  const mine = state.of === code // what is said of an older link is over
  const fresh = code !== '' && !(mine && state.used)
  return (
    <main className="signin"><div className="signin-in">
      <svg className="signin-logo" viewBox="0 0 32 32" aria-hidden="true"><path d="M8 7h16a3 3 0 0 1 3 3v9a3 3 0 0 1-3 3h-7l-6 5v-5H8a3 3 0 0 1-3-3v-9a3 3 0 0 1 3-3z" /></svg>
      <h1>{!fresh && s.state === 'out' && s.was ? 'You are signed out' : 'Sign in to Parley'}</h1>
      {mine && state.problem && <Note kind="bad">{state.problem}</Note>}
      {fresh
        ? <><p className="soft">This browser will stay signed in for 30 days. Only do this on a computer that is yours.</p>
          <Button kind="primary" autoFocus busy={state.busy} onClick={() => { void enter() }}>Sign in</Button></>
        : <><p className="soft">On the machine where Parley runs, ask for a new link and open it here:</p>
          <p className="signin-command"><code>{command}</code><Copy text={command} label="Copy the command" /></p>
          <NotFound /></>}
    </div></main>
  )
}

// Unreachable stands while nothing is known yet and the gateway does not answer.
export function Away() {
  useTitle('')
  return (
    <main className="signin"><div className="signin-in" role="status">
      <Icon name="offline" className="signin-icon" />
      <h1>Parley does not answer</h1>
      <p className="soft">It may be restarting. This page tries again every two seconds and goes on by itself. If it stays like this, start it with:</p>
      <p className="signin-command"><code>parley gateway</code><Copy text="parley gateway" label="Copy the command" /></p>
      <NotFound />
      <Button onClick={() => { void who() }}>Try now</Button>
    </div></main>
  )
}
