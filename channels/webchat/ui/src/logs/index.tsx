import { useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { LogItem } from '../api/types.gen'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { useTitle } from '../ui/page'
import { Empty, Note } from '../ui/states'
import './logs.css'
import '../runs/runs.css'

type Search = { level?: string; q?: string }
const most = 5000

// useLog follows the daemon's log. A cut line is taken up where it was; what the gateway no longer keeps is gone.
function useLog(level: string) {
  const [lines, set] = useState<LogItem[]>([])
  const [state, setState] = useState<'opening' | 'live' | 'lost'>('opening')
  useEffect(() => {
    set([])
    setState('opening')
    const events = new EventSource(`/v1/logs/events?level=${level}`)
    let waiting: LogItem[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const flush = () => {
      timer = undefined
      const fresh = waiting
      waiting = []
      set(old => {
        const last = old[old.length - 1]?.n ?? 0
        const first = fresh[0]?.n ?? 0
        return [...(first <= last ? [] : old), ...fresh].slice(-most) // smaller numbers: the gateway was started again
      })
    }
    events.onopen = () => { setState('live') }
    events.onerror = () => { setState('lost') }
    events.addEventListener('line', e => { waiting.push(JSON.parse((e as MessageEvent<string>).data) as LogItem); timer ??= setTimeout(flush, 50) })
    return () => { clearTimeout(timer); events.close() }
  }, [level])
  return { lines, state, clear: () => { set([]) } }
}

const textOf = (l: LogItem): string => `${l.time} ${l.level} ${l.message}${Object.entries(l.attrs).map(([k, v]) => ` ${k}=${/\s/.test(v) ? JSON.stringify(v) : v}`).join('')}`

// LogsPage is the daemon's own log, as it is written.
export function LogsPage({ search }: { search: Search }) {
  useTitle('Logs')
  const go = useNavigate()
  const level = search.level ?? 'info'
  const [q, setQ] = useState(search.q ?? '')
  const { lines, state, clear } = useLog(level)
  const word = q.trim().toLowerCase()
  const shown = useMemo(() => word ? lines.filter(l => textOf(l).toLowerCase().includes(word)) : lines, [lines, word])
  const box = useRef<HTMLDivElement>(null)
  const [follow, setFollow] = useState(true)
  const rows = useVirtualizer({ count: shown.length, getScrollElement: () => box.current, estimateSize: () => 30, overscan: 20, getItemKey: i => shown[i]?.n ?? i })
  useEffect(() => { if (follow && shown.length > 0) rows.scrollToIndex(shown.length - 1, { align: 'end' }) }, [follow, shown, rows])
  const atEnd = () => { const b = box.current; return !b || b.scrollHeight - b.scrollTop - b.clientHeight < 40 }
  return (
    <div className="logs-page">
      <header className="page-head">
        <h1 className="grow">Logs</h1>
        <span className="row small soft" role="status"><span className={`dot ${state === 'live' ? 'good' : 'warn'}`} />{state === 'live' ? 'live' : state === 'opening' ? 'opening' : 'cut off; trying again'}</span>
        <Copy text={() => shown.map(textOf).join('\n')} label="Copy what is shown" />
        <Button kind="small" onClick={clear}>Clear</Button>
        <p className="lead">What the daemon says of itself since it started: at most its last 2,000 lines. Credentials are never in it.</p>
      </header>
      <div className="filters">
        <label className="label">Level
          <select className="field" value={level} onChange={e => { void go({ to: '/logs', search: { ...search, level: e.target.value }, replace: true }) }}>
            <option value="debug">Everything</option><option value="info">Info and louder</option><option value="warn">Warnings and errors</option><option value="error">Errors</option>
          </select>
        </label>
        <label className="label search">Filter<input className="field" type="search" value={q} onChange={e => { setQ(e.target.value); void go({ to: '/logs', search: { ...search, q: e.target.value || undefined }, replace: true }) }} placeholder="channel, run, words …" /></label>
      </div>
      {state === 'lost' && lines.length === 0 && <Note kind="bad">The gateway does not answer. This page goes on by itself when it is back.</Note>}
      <div className="logs-box" ref={box} tabIndex={0} role="log" aria-label="Log lines" aria-live="off" onScroll={() => { setFollow(atEnd()) }}>
        {shown.length === 0 && state === 'live' && <Empty icon="log" title={word ? 'No line fits' : 'Nothing so loud was said'}>{word ? 'Lines that fit will appear as they are written.' : 'Lines appear here as they are written. Choose a lower level to see more; debug lines exist only when the daemon runs with --log-level debug.'}</Empty>}
        <div className="logs-all" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(v => {
            const l = shown[v.index]
            return l && <div key={v.key} ref={rows.measureElement} data-index={v.index} className={`log-row ${l.level.toLowerCase()}`} style={{ transform: `translateY(${v.start}px)` }}><LogRow line={l} /></div>
          })}
        </div>
      </div>
      {!follow && <Button className="logs-follow" icon="down" onClick={() => { setFollow(true) }}>Newest</Button>}
    </div>
  )
}

function LogRow({ line: l }: { line: LogItem }) {
  return (
    <>
      <time className="num" dateTime={l.time} title={new Date(l.time).toLocaleString()}>{new Date(l.time).toLocaleTimeString(undefined, { hour12: false })}</time>
      <span className="level">{l.level}</span>
      <span className="words"><span className="message">{l.message}</span>{Object.entries(l.attrs).map(([k, v]) => <span key={k} className="attr"> <span className="faint">{k}=</span>{v}</span>)}</span>
    </>
  )
}
