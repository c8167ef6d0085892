import DOMPurify from 'dompurify'
import { Marked, type Token } from 'marked'

// Markdown of a model, who may have been told what to write by a stranger: raw HTML is text, pictures are links (a picture
// that loads tells somebody that it was looked at), addresses are http, https and mailto, and what comes out is cleaned
// once more. No style, no handler, no id.

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
export const escape = (s: string): string => s.replace(/[&<>"']/g, c => escapes[c] ?? c)

const schemes = /^(?:https?|mailto):/i

// address is where a link really goes, in the form in which a browser would say it; undefined: nowhere that is allowed.
export function address(href: string): string | undefined {
  try {
    const u = new URL(href.trim())
    return schemes.test(u.protocol) ? u.href : undefined
  } catch {
    return undefined
  }
}

// link shows where it leads: words that are not the address itself lead nowhere, and the address stands behind them. What a
// model writes may have been put into its mouth, with something secret in the address.
function link(href: string, inside: string, text: string): string {
  const to = address(href)
  if (!to) return `<span class="no-link">${inside}</span>${href && bare(href) !== bare(text) ? ` (${escape(href.slice(0, 256))})` : ''}`
  const go = `<a href="${escape(to)}" title="${escape(to)}" rel="noopener noreferrer nofollow" target="_blank">${escape(to.replace(/^mailto:/i, ''))}</a>`
  return !text.trim() || bare(text) === bare(href) || bare(text) === bare(to) ? go : `<span class="no-link">${inside}</span> (${go})`
}

// bare is an address without what a reader does not miss in it.
const bare = (s: string): string => s.trim().replace(/^(?:mailto:|https?:\/\/)/, '').replace(/\/$/, '')

// invisible are characters that change how text looks without being seen: they hide what a command or a path says.
// So do control characters and all that a terminal or a font draws as nothing. A CR before a line feed is only its line's end.
const invisible = /\r(?!\n)|[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180E\u200B-\u200F\u2028-\u202E\u2060-\u2064\u2066-\u206F\u2800\u3164\uFE00-\uFE0E\uFEFF\uFFA0\uFFF9-\uFFFB\u{1D173}-\u{1D17A}\u{E0000}-\u{E01EF}]/gu

// revealed is code as HTML, with what is invisible in it shown by number.
export function revealed(code: string): string {
  return escape(code).replace(invisible, c => `<span class="unseen">U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}</span>`)
}

export const languageOf = (info: string | undefined): string => (/^[\w+#.-]{1,20}/.exec(info ?? '')?.[0] ?? '').toLowerCase()

const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }) => escape(text),
    link({ href, tokens }) { return link(href, this.parser.parseInline(tokens), this.parser.parseInline(tokens, this.parser.textRenderer)) },
    image: ({ href, text }) => link(href, `${escape(text || 'picture')} ↗`, text || 'picture'),
    heading({ depth, tokens }) {
      const level = Math.max(depth, 2) // the page's own heading is above
      return `<h${level} class="h${depth}">${this.parser.parseInline(tokens)}</h${level}>`
    },
    code: ({ text, lang }) => `<div class="code"><div class="code-head"><span>${escape(languageOf(lang) || 'text')}</span><button type="button" class="code-copy">Copy</button></div><pre tabindex="0"><code>${revealed(text)}</code></pre></div>`,
    codespan: ({ text }) => `<code>${revealed(text)}</code>`,
    checkbox: ({ checked }) => `<span class="box" role="img" aria-label="${checked ? 'done' : 'not done'}">${checked ? '☑' : '☐'}</span> `,
    table(token) {
      const cell = (c: (typeof token.header)[number], tag: 'th' | 'td') => `<${tag}${c.align ? ` class="${c.align}"` : ''}${tag === 'th' ? ' scope="col"' : ''}>${this.parser.parseInline(c.tokens)}</${tag}>`
      const head = `<tr>${token.header.map(c => cell(c, 'th')).join('')}</tr>`
      const body = token.rows.map(r => `<tr>${r.map(c => cell(c, 'td')).join('')}</tr>`).join('')
      return `<div class="md-table" role="region" aria-label="Table" tabindex="0"><table><thead>${head}</thead><tbody>${body}</tbody></table></div>`
    },
  },
})

const allowed = {
  ALLOWED_TAGS: ['p', 'br', 'strong', 'em', 'del', 'code', 'pre', 'ul', 'ol', 'li', 'blockquote', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'a', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'span', 'div', 'button'],
  ALLOWED_ATTR: ['href', 'title', 'rel', 'target', 'class', 'start', 'scope', 'role', 'aria-label', 'tabindex', 'type'],
  ALLOWED_URI_REGEXP: schemes,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ADD_URI_SAFE_ATTR: ['aria-label', 'rel', 'title', 'role', 'type', 'start', 'scope', 'tabindex', 'target'],
}

// clean lets through what the renderer above writes, and nothing else.
export const clean = (html: string): string => DOMPurify.sanitize(html, allowed)

// Block is one piece of an answer that is drawn by itself: while an answer grows only its last block changes.
export type Block = { key: number; kind: 'code'; text: string; language: string; open: boolean } | { key: number; kind: 'html'; raw: string }

const deepest = 24 // levels of quotes and lists; more is nobody's answer
const longest = 60_000 // characters of a block that are laid out
const deep = new RegExp(`^(?:[ \\t]{0,3}(?:>|[-*+]|\\d{1,9}[.)])[ \\t]?){${deepest},}`, 'm')

// lex never throws: what is too deep or too long for the parser is shown as it was written.
function lex(text: string): Token[] {
  if (deep.test(text)) return [plain(text)]
  try {
    return marked.lexer(text)
  } catch {
    return [plain(text)]
  }
}

const plain = (text: string): Token => ({ type: 'code', raw: text, text, lang: '' }) as Token

// fence says whether a block of code has its last line.
const closed = (raw: string): boolean => !/^ {0,3}(`{3,}|~{3,})/.test(raw) || /\n {0,3}(?:`{3,}|~{3,})[ \t]*\n?$/.test(raw)

export class Blocks {
  private text = ''
  private list: (Block & { at: number })[] = []

  // of cuts a text into blocks. When it is the text of the last call with more behind, only its end is read again.
  of(text: string): readonly Block[] {
    let from = 0
    let kept: (Block & { at: number })[] = []
    if (this.text && text.startsWith(this.text)) {
      kept = this.list.slice(0, -2) // the last may grow, and may join the one before
      from = this.list[kept.length]?.at ?? 0
    }
    const list = [...kept]
    let at = from
    for (const t of lex(text.slice(from))) {
      if (t.type === 'code' && t.raw.length <= 4 * longest) list.push({ key: at, at, kind: 'code', text: (t as { text: string }).text, language: languageOf((t as { lang?: string }).lang), open: !closed(t.raw) })
      else if (t.type !== 'space' && t.type !== 'def') list.push(t.raw.length > longest ? { key: at, at, kind: 'code', text: t.raw, language: '', open: false } : { key: at, at, kind: 'html', raw: t.raw })
      at += t.raw.length
    }
    const same = new Map(this.list.map(b => [b.key, b]))
    this.text = text
    this.list = list.map(b => {
      const o = same.get(b.key)
      if (!o || o.kind !== b.kind) return b
      if (o.kind === 'html' && b.kind === 'html' && o.raw === b.raw) return o
      if (o.kind === 'code' && b.kind === 'code' && o.text === b.text && o.open === b.open && o.language === b.language) return o
      return b
    })
    return this.list
  }
}

// htmlOf is a block as clean HTML.
export function htmlOf(raw: string): string {
  try {
    return clean(marked.parse(raw, { async: false }))
  } catch {
    return clean(`<p>${escape(raw)}</p>`)
  }
}

// steady is the end of a growing answer as it will stand: what is begun and not yet told apart (a marker, half a link, the
// first lines of a table) waits or is closed, so that no line changes its kind before the reader's eyes.
export function steady(text: string): string {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm)
  if (fences && fences.length % 2 === 1) return text.replace(/\n {0,3}[`~]{1,2}$/, '')
  const cut = text.lastIndexOf('\n\n') + 1
  let tail = text.slice(cut)
  if (/^\s*\|[^\n]*(?:\n\|?[\s:|-]*)?$/.test(tail)) return text.slice(0, cut) // a table is one when its second line is whole
  tail = tail.replace(/(^|\n)[ \t]*(?:#{1,6}|[-*+]|\d{1,9}[.)]?|>|`{1,3}|~{1,3}|={1,3}|[-_*]{2,3}|\|[^\n]*)[ \t]*$/, (m: string, start: string) => (m.includes('|') && /\n\|/.test(tail) && m.endsWith('|') ? m : start))
  tail = tail.replace(/!?\[([^\]\n]*)\]\([^)\n]*$/, '$1').replace(/!?\[([^\]\n]*)$/, '$1')
  const line = tail.slice(tail.lastIndexOf('\n') + 1)
  if ((line.match(/`/g)?.length ?? 0) % 2 === 1) tail = tail.endsWith('`') ? tail.slice(0, -1) : tail + '`'
  else {
    tail = tail.replace(/(?<!\*)\*{1,3}$|(?<!~)~{1,2}$|(?<![_\w])_{1,3}$/, '')
    if ((tail.match(/\*\*/g)?.length ?? 0) % 2 === 1) tail += '**'
    else if ((tail.match(/~~/g)?.length ?? 0) % 2 === 1) tail += '~~'
  }
  return text.slice(0, cut) + tail
}

// wholeWords leaves out a word that is still being written. Scripts without spaces have none to wait for.
export function wholeWords(text: string): string {
  const m = /[\p{L}\p{N}\p{M}'’_-]{1,40}$/u.exec(text)
  if (!m || m.index === 0 || /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u.test(m[0])) return text
  return text.slice(0, m.index)
}
