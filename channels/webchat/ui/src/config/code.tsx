import { useImperativeHandle, useMemo, useRef, type KeyboardEvent, type Ref } from 'react'

export type CodeHandle = { go: (line: number) => void }

type Props = { label: string; text: string; marks: readonly number[]; onChange: (text: string) => void; onSave: () => void; ref: Ref<CodeHandle> }

// Code is a text with numbered lines. It is the browser's own field, so that undoing, searching and screen readers work as everywhere.
export function Code({ label, text, marks, onChange, onSave, ref }: Props) {
  const area = useRef<HTMLTextAreaElement>(null)
  const moved = useRef<HTMLDivElement>(null)
  const leaves = useRef(false) // Escape was pressed: Tab goes on to the next control
  const lines = useMemo(() => text.split('\n').length, [text])
  const bad = useMemo(() => new Set(marks), [marks])
  const height = () => (area.current ? parseFloat(getComputedStyle(area.current).lineHeight) : 0)
  useImperativeHandle(ref, () => ({
    go: line => {
      const a = area.current
      if (!a) return
      const all = a.value.split('\n')
      const from = all.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0)
      a.focus()
      a.setSelectionRange(from, from + (all[line - 1]?.length ?? 0))
      a.scrollTop = Math.max(0, (line - 4) * height())
      a.scrollIntoView({ block: 'nearest' })
    },
  }))
  const key = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === 's') { e.preventDefault(); onSave(); return }
    if (e.key === 'Escape') { leaves.current = true; return }
    if (e.ctrlKey || e.metaKey || e.altKey || e.nativeEvent.isComposing) return
    if (e.key === 'Tab' && !leaves.current) { e.preventDefault(); indent(e.currentTarget, e.shiftKey) }
    if (e.key === 'Enter' && !e.shiftKey) { e.preventDefault(); newLine(e.currentTarget) }
    if (e.key !== 'Shift') leaves.current = false
  }
  return (
    <div className="code-edit">
      <div className="code-gutter" aria-hidden="true"><div ref={moved}>{Array.from({ length: lines }, (_, i) => <div key={i} className={bad.has(i + 1) ? 'bad' : undefined}>{i + 1}</div>)}</div></div>
      <textarea ref={area} className="code-text" aria-label={label} aria-describedby="editor-help" value={text} wrap="off" spellCheck={false} autoComplete="off" autoCapitalize="none" autoCorrect="off" data-gramm="false"
        onChange={e => { onChange(e.target.value) }} onKeyDown={key} onBlur={() => { leaves.current = false }}
        onScroll={e => { if (moved.current) moved.current.style.transform = `translateY(${-e.currentTarget.scrollTop}px)` }} />
    </div>
  )
}

// put writes over the selection, as typing does: it can be undone.
function put(a: HTMLTextAreaElement, text: string) {
  if (!document.execCommand('insertText', false, text)) {
    a.setRangeText(text, a.selectionStart, a.selectionEnd, 'end')
    a.dispatchEvent(new Event('input', { bubbles: true }))
  }
}

// newLine begins a line as far in as the one before it, and behind "- " as far as what stands there.
function newLine(a: HTMLTextAreaElement) {
  const line = a.value.slice(a.value.lastIndexOf('\n', a.selectionStart - 1) + 1, a.selectionStart)
  const [, space = '', dash = ''] = /^( *)((?:- +)*)/.exec(line) ?? []
  put(a, `\n${space}${' '.repeat(dash.length)}${/:\s*$/.test(line) ? '  ' : ''}`)
}

// indent moves the lines of the selection by two spaces; without a selection it writes them.
function indent(a: HTMLTextAreaElement, back: boolean) {
  const { selectionStart: from, selectionEnd: to, value } = a
  if (!back && from === to) { put(a, '  '); return }
  const begin = value.lastIndexOf('\n', from - 1) + 1
  const end = to > from && value[to - 1] === '\n' ? to - 1 : value.indexOf('\n', to) < 0 ? value.length : value.indexOf('\n', to)
  const lines = value.slice(begin, end).split('\n')
  const moved = lines.map(l => (back ? l.replace(/^ {1,2}/, '') : l && `  ${l}`)).join('\n')
  if (moved === value.slice(begin, end)) return
  a.setSelectionRange(begin, end)
  put(a, moved)
  a.setSelectionRange(begin, begin + moved.length)
}
