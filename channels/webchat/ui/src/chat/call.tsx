import { createContext, useContext, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import type { Transcript } from '../store/transcript'
import { Copy } from '../ui/copy'
import { bytes, number } from '../ui/format'
import { counted, diff, type DiffLine } from './diff'
import { Unseen } from './markdown-view'
import './call.css'

// What a tool was called with, and what came of it, as a person reads it: texts are texts, an edit is a diff. All of it is
// a model's or a stranger's: what is invisible is shown by number, and what is long comes in pieces.

type Args = Record<string, unknown>

const asObject = (args: unknown): Args | undefined => typeof args === 'object' && args !== null && !Array.isArray(args) ? args as Args : undefined

const main = ['command', 'cmd', 'path', 'file', 'url', 'query', 'q', 'pattern', 'name', 'text', 'prompt']
const lineMost = 200 // characters of a line that stands for more

// mainOf is the argument that says most, on one line.
export function mainOf(args: unknown): string {
  if (typeof args === 'string') return oneLine(args)
  const a = asObject(args)
  if (!a) return ''
  for (const name of main) if (typeof a[name] === 'string') return oneLine(a[name])
  const first = Object.values(a).find(v => typeof v === 'string' || typeof v === 'number')
  return first === undefined ? '' : oneLine(String(first))
}

function oneLine(text: string): string {
  const line = text.slice(0, lineMost + 1).split('\n', 1)[0] ?? ''
  return line.length > lineMost ? `${line.slice(0, lineMost)}…` : line
}

// shortly is what came of a call, in a few words.
export function shortly(name: string, args: unknown, result: string, error: boolean | undefined): string {
  const text = result.trim()
  if (!text) return error ? 'failed' : 'done'
  const last = text.slice(text.lastIndexOf('\n') + 1)
  if (name === 'exec') {
    const ended = /^\((exit code (\d+)|stopped|ended)\b.*\)$/.exec(last)
    if (ended) return ended[2] === '0' ? linesIn(text.slice(0, -last.length).trim()) : ended[2] ? `exit code ${ended[2]}` : last.slice(1, -1)
  }
  if (error && refused(text)) return 'refused'
  if (!error) {
    const wrote = name === 'write_file' ? /\((new|replaced), (\d+) bytes\)/.exec(text) : null
    if (wrote) return `${wrote[1] ?? ''}, ${bytes(Number(wrote[2]))}`
    const edit = name === 'edit_file' ? editOf(args) : undefined
    if (edit) { const { more, less } = counted(diff(edit.before, edit.after)); return `+${more} −${less}` }
    if (name === 'send_file') return 'sent'
  }
  return linesIn(text)
}

// refused says that the gateway did not have a call made at all, by how it says so.
export const refused = (result: string): boolean => /^(?:Refused|Bad arguments)\b/.test(result)

function linesIn(text: string): string {
  if (text === '' || text === '(no output)') return 'no output'
  let n = 1
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) n++
  if (n > 1) return `${number(n)} lines`
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

function editOf(args: unknown): { before: string; after: string } | undefined {
  const a = asObject(args)
  return a && typeof a.old_text === 'string' && typeof a.new_text === 'string' ? { before: a.old_text, after: a.new_text } : undefined
}

const titles: Record<string, string> = { content: 'Content', command: 'Command', text: 'Text', prompt: 'Prompt' }
const short = (v: unknown): boolean => v === null || typeof v !== 'object' && (typeof v !== 'string' || v.length <= 120 && !v.includes('\n'))
const plain = (v: unknown): string => typeof v === 'string' ? v : JSON.stringify(v, null, 2)

// Given is what a tool was called with.
export function Given({ name, args }: { name: string; args: unknown }) {
  const a = asObject(args)
  const edit = name === 'edit_file' ? editOf(args) : undefined
  if (!a) return <section aria-label="Arguments"><Piece title="Arguments" text={args === undefined ? '' : plain(args)} /></section>
  const entries = Object.entries(a).filter(([k]) => !edit || (k !== 'old_text' && k !== 'new_text'))
  const facts = entries.filter(([k, v]) => short(v) && k !== 'command')
  const texts = entries.filter(([k, v]) => !short(v) || k === 'command')
  return (
    <section className="given" aria-label="Arguments">
      {facts.length > 0 && <dl className="facts small">{facts.map(([k, v]) => <Fact key={k} name={k}><Unseen text={plain(v)} /></Fact>)}</dl>}
      {edit && <Diff before={edit.before} after={edit.after} />}
      {texts.map(([k, v]) => <Piece key={k} title={titles[k] ?? k} text={plain(v)} />)}
      {Object.keys(a).length === 0 && <p className="small faint">Called without arguments.</p>}
    </section>
  )
}

const Fact = ({ name, children }: { name: string; children: ReactNode }) => <><dt><Unseen text={oneLine(name)} /></dt><dd className="mono"><bdi>{children}</bdi></dd></>

const diffMost = 200 // lines that are drawn until more is asked for

function Diff({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => diff(before, after), [before, after])
  const [most, set] = useState(diffMost)
  const { more, less } = counted(lines)
  return (
    <section className="piece" aria-label="Change">
      <div className="row"><h4 className="grow">Change <span className="num">+{more} −{less}</span></h4><Copy text={after} label="Copy the new text" /></div>
      <pre className="diff" tabIndex={0} aria-label="Change, line by line">{lines.slice(0, most).map((l, i) => <DiffRow key={i} line={l} />)}</pre>
      {lines.length > most && <button type="button" className="button small quiet" onClick={() => { set(most * 10) }}>{`Show more of ${number(lines.length)} lines`}</button>}
    </section>
  )
}

const signs = { ' ': ['', '', ' '], '-': ['gone', 'removed: ', '−'], '+': ['come', 'added: ', '+'] } as const

function DiffRow({ line: l }: { line: DiffLine }) {
  const [kind, said, sign] = signs[l.sign]
  return <span className={`diff-line ${kind}`}><span className="diff-sign" aria-hidden="true">{sign}</span><span className="diff-text" dir="auto">{said && <span className="sr-only">{said}</span>}<Unseen text={l.text.slice(0, pieceFirst)} />{'\n'}</span></span>
}

const pieceFirst = 4000 // characters that are drawn at once, and how many more with each click
const pieceMore = 60_000

// Piece is one text, with its beginning first.
export function Piece({ title, text, bad, children }: { title: string; text: string; bad?: boolean; children?: ReactNode }) {
  const [most, set] = useState(pieceFirst)
  if (!text) return <p className="small faint">{title}: none</p>
  const left = text.length - most
  return (
    <section className={bad ? 'piece bad' : 'piece'} aria-label={title}>
      <div className="row"><h4 className="grow"><Unseen text={oneLine(title)} /></h4><Copy text={text} label={`Copy ${title.toLowerCase()}`} /></div>
      <pre tabIndex={0} aria-label={title} dir="auto"><Unseen text={text.slice(0, most)} /></pre>
      <div className="row wrap">
        {left > 0 && <button type="button" className="button small quiet" onClick={() => { set(most + pieceMore) }}>{left <= pieceMore ? `Show all ${number(text.length)} characters` : `Show more of ${number(text.length)} characters`}</button>}
        {most > pieceFirst && <button type="button" className="button small quiet" onClick={() => { set(pieceFirst) }}>Show less</button>}
        {children}
      </div>
    </section>
  )
}

// WholeOutput leads to what is kept of a command's output, where its result holds only the beginning and the end.
export function WholeOutput({ run, call, text }: { run: string; call: string; text: string }) {
  const kept = /^\(\d+ bytes in all; the middle is cut out; (?:all of it is|its first (\d+) bytes are) in /m.exec(text.slice(-600))
  if (!run || !kept) return null
  return <a className="button small quiet" href={`/v1/runs/${encodeURIComponent(run)}/steps/${encodeURIComponent(call)}/output`} target="_blank" rel="noopener noreferrer">{kept[1] ? `The first ${number(Number(kept[1]))} bytes of the output` : 'All of the output'}</a>
}

// Output is what the commands that run now have written, by call.
export const Output = createContext<Transcript['output']>(new Map())

const nearEnd = 8 // pixels

// Live is the end of what a command has written so far. It follows only who is at its end, and is read aloud to nobody.
export function Live({ call }: { call: string }) {
  const written = useContext(Output).get(call)
  const box = useRef<HTMLPreElement>(null)
  const atEnd = useRef(true)
  useLayoutEffect(() => {
    const b = box.current
    if (b && atEnd.current) b.scrollTop = b.scrollHeight
  }, [written])
  if (!written?.text) return null
  const above = written.lines - (written.text.match(/\n/g)?.length ?? 0)
  return (
    <div className="live">
      {above > 0 && <p className="small faint num">{above === 1 ? '1 line above' : `${number(above)} lines above`}</p>}
      <pre ref={box} tabIndex={0} role="group" aria-label="Output so far" aria-live="off" dir="auto" onScroll={e => { const b = e.currentTarget; atEnd.current = b.scrollHeight - b.scrollTop - b.clientHeight < nearEnd }}><Unseen text={written.text.replace(/\n$/, '')} /></pre>
    </div>
  )
}
