import { useCallback, useEffect, useRef, useState } from 'react'
import { call, get, post, Problem } from '../api/http'
import type { Applied, Checked, ConfigText } from '../api/types'
import { Done, Faults, Refused, useApply } from '../setup/apply'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { Failed, Note, Skeleton } from '../ui/states'
import { diff } from '../chat/diff'
import { Code, type CodeHandle } from './code'
import { edited, type Edit } from './edited'
import './config.css'

const pause = 400 // ms without a key, then the text is looked at

// Editor is the file as a text. What is typed outlives a look at other pages, and is in no storage.
export function Editor({ onSaved }: { onSaved: () => void }) {
  const now = useAtom(edited)
  const [error, fail] = useState<Error>()
  const [done, setDone] = useState<Applied>()
  const [theirs, setTheirs] = useState<ConfigText>() // the file, which is another than the one that this text was made of
  const code = useRef<CodeHandle>(null)
  const load = useCallback(async () => {
    try {
      const file = await get<ConfigText>('/v1/config/file')
      const mine = edited.get()
      if (!mine || mine.text === mine.file.text) edited.set({ file, text: file.text })
      else if (file.revision !== mine.file.revision) setTheirs(file)
      fail(undefined)
    } catch (err) { fail(err as Error) }
  }, [])
  useEffect(() => { void load() }, [load])
  const checked = useChecked(now)
  const save = useApply(async () => {
    const e = edited.get()
    if (!e) return
    try {
      const applied = await call<Applied>('/v1/config/file', { method: 'PUT', body: { text: e.text, revision: e.file.revision } })
      setDone(applied)
      setTheirs(undefined)
      edited.set({ file: { ...e.file, text: e.text, revision: applied.revision, exists: true }, text: e.text })
      await load() // secrets that were typed are masked from now on
      onSaved()
    } catch (err) {
      if (!(err instanceof Problem && err.code === 'config_changed')) throw err
      setTheirs(await get<ConfigText>('/v1/config/file'))
    }
  })
  const changed = now !== undefined && now.text !== now.file.text
  useEffect(() => {
    if (!changed) return
    const stay = (e: BeforeUnloadEvent) => { e.preventDefault() }
    window.addEventListener('beforeunload', stay)
    return () => { window.removeEventListener('beforeunload', stay) }
  }, [changed])
  if (!now) return error ? <Failed error={error} retry={() => { void load() }} /> : <Skeleton lines={8} />
  const { file, text } = now
  const problems = checked?.problems ?? (changed ? [] : file.problems)
  const set = (to: string) => { setDone(undefined); edited.set({ file, text: to }) }
  const write = () => { if (changed && !save.busy) { save.clear(); setDone(undefined); void save.run() } }
  return (
    <div className="stack">
      {error && <Failed error={error} retry={() => { void load() }} />}
      {theirs && <Conflict mine={text} theirs={theirs} onMine={() => { edited.set({ file: theirs, text }); setTheirs(undefined); void save.run() }} onTheirs={() => { edited.set({ file: theirs, text: theirs.text }); setTheirs(undefined); save.clear() }} onGoOn={() => { edited.set({ file: theirs, text }); setTheirs(undefined) }} />}
      {done && !changed && <Done applied={done}>Saved and in force.</Done>}
      <Code ref={code} label="The configuration file" text={text} marks={problems.map(p => p.line)} onChange={set} onSave={write} />
      <Findings changed={changed} checked={checked} problems={problems} onLine={line => code.current?.go(line)} />
      <Refused act={save} listed />
      <div className="form-foot">
        <Button disabled={!changed || save.busy} onClick={() => { set(file.text); save.clear() }}>Discard changes</Button>
        <Button kind="primary" busy={save.busy} disabled={!changed} onClick={write}>Save</Button>
      </div>
      <p className="small soft" id="editor-help">Ctrl+S saves. Tab indents; press Escape before it to go on to the buttons.{file.masked.length > 0 && ' •••• is a secret that stays what it is; write another one in its place to change it, or ${file:…} to name a file.'}</p>
      {file.overridden.length > 0 && <Note>Set by the environment or the command line, whatever stands here: <Keys list={file.overridden} />.</Note>}
    </div>
  )
}

// useChecked is what the gateway says of a text that is typed, once nobody types.
function useChecked(now: Edit | undefined): Checked | undefined {
  const [of, set] = useState<{ text: string; checked: Checked }>()
  const text = now && now.text !== now.file.text ? now.text : undefined
  useEffect(() => {
    if (text === undefined) return
    let on = true
    const timer = setTimeout(() => {
      post<Checked>('/v1/config/check', { text }).then(checked => { if (on) set({ text, checked }) }, () => undefined) // saving says what is wrong
    }, pause)
    return () => { on = false; clearTimeout(timer) }
  }, [text])
  return text !== undefined && of ? of.checked : undefined // the last word stands until the next one
}

const Keys = ({ list }: { list: readonly string[] }) => <>{list.map((k, i) => <span key={k}>{i > 0 && ', '}<code>{k}</code></span>)}</>

// Findings are what a text would come to: what is wrong, by line; what changes, and what that wants.
function Findings({ changed, checked, problems, onLine }: { changed: boolean; checked: Checked | undefined; problems: Checked['problems']; onLine: (line: number) => void }) {
  return (
    <div role="status" aria-label="What the text comes to">
      {problems.length > 0 && <div className="note bad findings-note"><div className="grow stack-s"><strong>{problems.length === 1 ? 'One problem' : `${problems.length} problems`}</strong><Faults list={problems} onLine={onLine} /></div></div>}
      {changed && checked?.ok && (
        <ul className="comes small soft">
          <li>{checked.changed.length === 0 ? 'No problem. Nothing that counts is changed.' : <>No problem. Changed: <Keys list={checked.changed} />.</>}</li>
          {checked.guarded.length > 0 && <li>Wants a fresh sign-in: <Keys list={checked.guarded} />.</li>}
          {checked.restart.length > 0 && <li>In force with the next start of Parley: <Keys list={checked.restart} />.</li>}
        </ul>
      )}
    </div>
  )
}

// Conflict shows what somebody else made of the file beside what is typed here.
function Conflict({ mine, theirs, onMine, onTheirs, onGoOn }: { mine: string; theirs: ConfigText; onMine: () => void; onTheirs: () => void; onGoOn: () => void }) {
  const lines = diff(theirs.text, mine)
  const near = lines.map((l, i) => l.sign !== ' ' || lines.slice(Math.max(0, i - 2), i + 3).some(x => x.sign !== ' '))
  return (
    <section className="card stack" aria-label="The file was changed meanwhile">
      <h2>The file was changed meanwhile</h2>
      <p className="soft">Somebody else saved it after you had opened it. Lines with − stand in the file now and not in your text; lines with + only in yours.</p>
      <div className="conflict mono" role="region" tabIndex={0} aria-label="What differs">{lines.map((l, i) => near[i]
        ? <div key={i} className={`diff-line${l.sign === '-' ? ' gone' : l.sign === '+' ? ' come' : ''}`}><span className="diff-sign">{l.sign === '-' ? '−' : l.sign}</span><span className="diff-text">{l.text}</span></div>
        : near[i - 1] ? <div key={i} className="faint">…</div> : null)}</div>
      <div className="form-foot"><Button onClick={onTheirs}>Take the file’s</Button><Button onClick={onGoOn}>Go on editing mine</Button><Button kind="danger" onClick={onMine}>Save mine over it</Button></div>
    </section>
  )
}
