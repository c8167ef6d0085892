import { memo, useEffect, useMemo, useRef, useState, type MouseEvent } from 'react'
import { copyText } from '../ui/copy'
import { useHighlight } from './highlight'
import { Blocks, htmlOf, revealed, steady, wholeWords, type Block } from './markdown'

// Markdown is an answer, drawn in blocks. While it grows only its last block changes, by whole words.
export function Markdown({ text, growing }: { text: string; growing: boolean }) {
  const blocks = useRef<Blocks>(null)
  blocks.current ??= new Blocks()
  const shown = useWords(text, growing)
  const list = useMemo(() => blocks.current?.of(growing ? steady(shown) : shown) ?? [], [shown, growing])
  return <div className="md" dir="auto" onClick={copyCode}>{list.map(b => (b.kind === 'code' ? <Code key={b.key} block={b} /> : <Html key={b.key} raw={b.raw} />))}</div>
}

// useWords holds back a word that is being written, for a moment at most.
function useWords(text: string, growing: boolean): string {
  const [all, showAll] = useState('')
  useEffect(() => {
    if (!growing) return
    const timer = setTimeout(() => { showAll(text) }, 150)
    return () => { clearTimeout(timer) }
  }, [text, growing])
  if (!growing || all === text) return text
  const words = wholeWords(text)
  return words.length < all.length ? all : words
}

const Html = memo(function Html({ raw }: { raw: string }) {
  const html = useMemo(() => ({ __html: htmlOf(raw) }), [raw])
  return <div className="md-block" dir="auto" dangerouslySetInnerHTML={html} />
})

const Code = memo(function Code({ block }: { block: Block & { kind: 'code' } }) {
  const colours = useHighlight(block.text, block.language, !block.open)
  const unseen = useMemo(() => revealed(block.text), [block.text])
  const html = colours && !unseen.includes('class="unseen"') ? colours : unseen
  return (
    <div className="code" dir="ltr">
      <div className="code-head"><span>{block.language || 'text'}</span><button type="button" className="code-copy">Copy</button></div>
      <pre tabIndex={0} aria-label={`Code, ${block.language || 'text'}`}><code dangerouslySetInnerHTML={{ __html: html }} /></pre>
    </div>
  )
})

// copyCode is every "Copy" of a block of code: those inside lists are HTML and have no handler of their own.
function copyCode(e: MouseEvent) {
  const button = (e.target as Element).closest('.code-copy')
  const code = button?.closest('.code')?.querySelector('code')
  if (!button || !code) return
  const text = [...code.childNodes].map(plainOf).join('')
  void copyText(text).then(ok => {
    if (!ok) return
    button.textContent = 'Copied'
    setTimeout(() => { button.textContent = 'Copy' }, 1500)
  })
}

// plainOf gives back what "unseen" stands for.
function plainOf(n: Node): string {
  if (n instanceof Element && n.classList.contains('unseen')) return String.fromCodePoint(parseInt((n.textContent ?? '').slice(2), 16))
  return n instanceof Element ? [...n.childNodes].map(plainOf).join('') : n.textContent ?? ''
}

// Unseen is a text with what is invisible in it shown by number.
export const Unseen = memo(function Unseen({ text }: { text: string }) {
  return <span dangerouslySetInnerHTML={{ __html: revealed(text) }} />
})
