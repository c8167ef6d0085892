import { useRef, useState } from 'react'
import { post, Problem } from '../api/http'
import type { Applied, ConfigProblem } from '../api/types'
import { sentence } from '../channels/say'
import { who } from '../store/app'
import { Button } from '../ui/button'
import { shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { Inline } from '../ui/inline'
import { Failed, Note } from '../ui/states'
import { Fresh } from './fresh'
import './setup.css'

export type Change = { path: string; value?: unknown; remove?: true }
export type Secret = { path: string; value: string }

// change has the gateway write to its configuration and put it in force.
export function change(changes: Change[], secrets: Secret[] = []): Promise<Applied> {
  if (!changes.length && !secrets.length) return Promise.resolve({ revision: '', changed: [], restart: [], notes: ['Nothing was changed.'] })
  return post<Applied>('/v1/config/change', { changes, secrets })
}

export type Apply = { run: () => Promise<boolean>; busy: boolean; error: Error | undefined; clear: () => void }

// useApply is useAct for what changes the configuration: an error stays in view while it is tried again, so that a code can be given
// below it, and who answers here is read again when it is done.
export function useApply(act: () => Promise<unknown>): Apply {
  const [state, set] = useState<{ busy: boolean; error?: Error }>({ busy: false })
  const latest = useRef(act)
  latest.current = act
  const run = async () => {
    set(s => ({ ...s, busy: true }))
    try { await latest.current(); await who() } catch (error) { set({ busy: false, error: error as Error }); return false }
    set({ busy: false })
    return true
  }
  return { run, ...state, error: state.error, clear: () => { set({ busy: false }) } }
}

// Refused says why a change was not made, and what to do. What was typed stays where it is. Where the lines are listed beside it, it
// does not list them once more.
export function Refused({ act, listed }: { act: Apply; listed?: boolean }) {
  const { error } = act
  if (!error) return null
  const again = () => { void act.run() }
  if (!(error instanceof Problem)) return <Failed error={error} retry={again} />
  if (error.code === 'fresh_sign_in') return <Fresh refused={error.message} busy={act.busy} done={again} />
  const faults = error.body.problems ?? []
  return (
    <Note kind="bad" act={error.status >= 500 || error.code === 'config_changed' ? <Button kind="small" busy={act.busy} onClick={again}>Try again</Button> : undefined}>
      <bdi><Inline text={shown(faults.length > 0 ? error.message.replace(/:.*$/s, '.') : error.message)} quotes /></bdi>
      {faults.length > 0 && !listed && <Faults list={faults} />}
    </Note>
  )
}

// Faults are what is wrong with a configuration, by line.
export function Faults({ list, onLine }: { list: readonly ConfigProblem[]; onLine?: (line: number) => void }) {
  return (
    <ul className="faults">
      {list.map((f, i) => (
        <li key={i}>
          {f.line > 0 && (onLine ? <button type="button" className="fault-line" onClick={() => { onLine(f.line) }}>Line {f.line}</button> : <span className="fault-line">Line {f.line}</span>)}
          <span>{f.key && <><code>{f.key}</code>: </>}<bdi>{shown(f.message)}</bdi></span>
        </li>
      ))}
    </ul>
  )
}

// Done is what a change came to.
export function Done({ applied: a, more, children }: { applied: Applied; more?: React.ReactNode; children: React.ReactNode }) {
  return (
    <div className="note good" role="status">
      <Icon name="check" />
      <div className="grow stack-s">
        <strong className="block">{children}</strong>
        {a.notes.map(n => <p key={n}><Inline text={sentence(shown(n))} quotes /></p>)}
        {more}
        {a.restart.length > 0 && <p>In force with the next start of Parley: {a.restart.map((k, i) => <span key={k}>{i > 0 && ', '}<code>{k}</code></span>)}.</p>}
      </div>
    </div>
  )
}
