import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useImperativeHandle, useRef, useState, type ReactNode, type Ref } from 'react'
import { Button } from '../ui/button'
import { Icon } from '../ui/icon'

export type Line = { id: string; size: number; counts: boolean; view: ReactNode }

export type TranscriptHandle = { toEnd: () => void; focus: () => void }

export type TranscriptProps = {
  lines: Line[]
  label: string
  older: 'none' | 'more' | 'loading' | 'failed'
  onOlder: () => void
  onAtEnd: (atEnd: boolean) => void
  ref: Ref<TranscriptHandle>
}

const near = 80 // pixels from the end that count as the end
const ahead = 1500 // pixels from the beginning at which the page before is read

// newSince counts what came behind a line.
function newSince(lines: Line[], id: string | undefined): number {
  let n = 0
  for (let i = lines.length - 1; i >= 0; i--) {
    const l = lines[i] as Line
    if (l.id === id) return n
    if (l.counts) n++
  }
  return 0
}

// TranscriptView draws the lines that are in view. It stays at the end only for who is there; above, what one reads does
// not move, whatever comes.
export function TranscriptView({ lines, label, older, onOlder, onAtEnd, ref }: TranscriptProps) {
  const box = useRef<HTMLDivElement>(null)
  const [atEnd, setAtEnd] = useState(true)
  const [left, setLeft] = useState<string>() // the last line when the reader left the end
  const held = useRef(false)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: i => lines[i]?.size ?? 80,
    getItemKey: i => lines[i]?.id ?? i,
    overscan: 6,
    paddingStart: 16,
    paddingEnd: 24,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: held.current ? -1 : near,
  })
  const toEnd = (behavior: ScrollBehavior = 'auto') => { virtual.scrollToEnd({ behavior }) }
  useImperativeHandle(ref, () => ({ toEnd: () => { toEnd() }, focus: () => { box.current?.focus() } }))
  const first = useRef(true)
  useEffect(() => {
    if (!first.current || !lines.length) return
    first.current = false
    virtual.scrollToEnd()
  })
  const end = useRef(true)
  useEffect(() => { // who was at the end stays there when the window, the panel or the composer changes
    const b = box.current
    if (!b) return
    const watch = new ResizeObserver(() => { if (end.current && !first.current) virtual.scrollToEnd() })
    watch.observe(b)
    return () => { watch.disconnect() }
  }, [virtual])
  const scrolled = () => {
    const b = box.current
    if (!b) return
    const now = b.scrollHeight - b.scrollTop - b.clientHeight < near
    end.current = now
    if (now !== atEnd) {
      setAtEnd(now)
      setLeft(lines[lines.length - 1]?.id)
      onAtEnd(now)
    }
    if (b.scrollTop < ahead && older === 'more') onOlder()
  }
  useEffect(() => { // who stands at the beginning gets more without moving
    const b = box.current
    if (b && older === 'more' && !first.current && b.scrollTop < ahead) onOlder()
  }, [older, onOlder, lines.length])
  const hold = (e: React.MouseEvent) => { // what somebody opens stays where it is, also at the end
    if (!(e.target as Element).closest('[aria-expanded]')) return
    held.current = true
    virtual.options.scrollEndThreshold = -1
    setTimeout(() => {
      held.current = false
      virtual.options.scrollEndThreshold = near
      scrolled()
    }, 400)
  }
  const fresh = atEnd ? 0 : newSince(lines, left)
  return (
    <div className="transcript-box">
      <div className="transcript" ref={box} tabIndex={0} role="region" aria-label={label} onScroll={scrolled} onClickCapture={hold}>
        {older !== 'none' && <div className="older" role="status">{older === 'failed' ? <Button kind="small" onClick={onOlder}>Older messages could not be read. Try again</Button> : older === 'loading' ? <Icon name="spinner" className="spin" /> : null}</div>}
        <div className="transcript-in" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(v => (
            <div key={v.key} ref={virtual.measureElement} data-index={v.index} className="line" style={{ transform: `translateY(${v.start}px)` }}>{lines[v.index]?.view}</div>
          ))}
        </div>
      </div>
      {!atEnd && <button type="button" className="button to-end" onClick={() => { toEnd() }}>{fresh > 0 ? `${fresh} new` : 'Latest'}<Icon name="down" /></button>}
    </div>
  )
}
