import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { highlight } from './languages'
import { address, Blocks, clean, htmlOf, revealed, steady, wholeWords } from './markdown'

// hostile is what somebody writes who wants the page to do something.
const hostile = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg onload=alert(1)>',
  '<svg><script>alert(1)</script></svg>',
  '<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
  '<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>',
  '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
  '<iframe src="javascript:alert(1)"></iframe>',
  '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
  '<object data="javascript:alert(1)">',
  '<embed src="javascript:alert(1)">',
  '<base href="https://evil.example/">',
  '<meta http-equiv="refresh" content="0;url=https://evil.example">',
  '<link rel="stylesheet" href="https://evil.example/x.css">',
  '<style>*{background:url(https://evil.example)}</style>',
  '<p style="background:url(https://evil.example)">x</p>',
  '<form action="https://evil.example"><input name=token></form>',
  '<a href="javascript:alert(1)">x</a>',
  '<details open ontoggle=alert(1)>',
  '<video><source onerror=alert(1)>',
  '<audio src=x onerror=alert(1)>',
  '<input autofocus onfocus=alert(1)>',
  '<template><script>alert(1)</script></template>',
  '<xmp><p title="</xmp><svg/onload=alert(1)>">',
  '<!--><img src=x onerror=alert(1)>-->',
  '<![CDATA[<img src=x onerror=alert(1)>]]>',
  '<?php echo 1 ?><img src=x onerror=alert(1)>',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](java\tscript:alert(1))',
  '[x](java&#10;script:alert(1))',
  '[x](&#106;avascript:alert(1))',
  '[x](\u0001javascript:alert(1))',
  '[x](vbscript:msgbox(1))',
  '[x](data:text/html,<script>alert(1)</script>)',
  '[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)',
  '[x](file:///etc/passwd)',
  '[x](blob:https://evil.example/1)',
  '[x](//evil.example)',
  '[x](/v1/runs)',
  '[x](https://evil.example "a\\" onmouseover=alert(1) b=\\"")',
  '[x](https://evil.example/"onmouseover="alert(1))',
  '![x](https://evil.example/pixel.gif)',
  '![x](javascript:alert(1))',
  '![x" onerror="alert(1)](https://evil.example/a.png)',
  '<https://evil.example/"onclick="alert(1)>',
  '<javascript:alert(1)>',
  '[x]: javascript:alert(1)\n\n[x]',
  '[<img src=x onerror=alert(1)>](https://example.org)',
  '**<img src=x onerror=alert(1)>**',
  '# <img src=x onerror=alert(1)>',
  '| <img src=x onerror=alert(1)> |\n| --- |\n| <svg onload=alert(1)> |',
  '- [ ] <img src=x onerror=alert(1)>',
  '> <script>alert(1)</script>',
  '`<img src=x onerror=alert(1)>`',
  '```html\n<img src=x onerror=alert(1)>\n```',
  '```"><img src=x onerror=alert(1)>\nx\n```',
  '1. x\n\n   ```"onclick="alert(1)\n   <script>alert(1)</script>\n   ```',
  '&lt;img src=x onerror=alert(1)&gt;',
  '<a id="root" name="root" class="button">x</a>',
  '<div class="veil">x</div>',
  'https://evil.example/<script>alert(1)</script>',
  '\u202Egnp.exe',
]

const tags = new Set(['P', 'BR', 'STRONG', 'EM', 'DEL', 'CODE', 'PRE', 'UL', 'OL', 'LI', 'BLOCKQUOTE', 'H2', 'H3', 'H4', 'H5', 'H6', 'HR', 'A', 'TABLE', 'THEAD', 'TBODY', 'TR', 'TH', 'TD', 'SPAN', 'DIV', 'BUTTON'])
const attributes = new Set(['href', 'title', 'rel', 'target', 'class', 'start', 'scope', 'role', 'aria-label', 'tabindex', 'type'])

function check(html: string) {
  const box = document.createElement('div')
  box.innerHTML = html
  for (const e of box.querySelectorAll('*')) {
    expect(tags, html).toContain(e.tagName)
    for (const a of e.attributes) expect(attributes, html).toContain(a.name)
    const href = e.getAttribute('href')
    if (href !== null) {
      expect(href, html).toMatch(/^(https?|mailto):/)
      expect(e.getAttribute('rel')).toBe('noopener noreferrer nofollow')
      expect(e.getAttribute('target')).toBe('_blank')
      expect(e.getAttribute('title')).toBe(href)
    }
    if (e.tagName === 'BUTTON') expect(e.className).toBe('code-copy')
  }
  const once = box.innerHTML
  box.innerHTML = once // what parses differently a second time is how cleaners are fooled
  expect(box.innerHTML).toBe(once)
}

const render = (text: string) => new Blocks().of(text).map(b => (b.kind === 'html' ? htmlOf(b.raw) : `<pre><code>${revealed(b.text)}</code></pre>`)).join('')

describe('hostile Markdown', () => {
  test.each(hostile)('%s', text => {
    check(render(text))
    check(htmlOf(text))
    check(clean(text))
    check(highlight(text, 'xml') ?? '')
    for (let i = 1; i < text.length; i++) check(htmlOf(steady(text.slice(0, i))))
  })

  test('anything', () => {
    const bits = fc.constantFrom(...hostile, '<', '>', '"', "'", '`', '```\n', '\n', '\n\n', '|', '](', '[', '![', '*', '**', '_', '&#x', ';', '<!--', '-->', '</', 'javascript:', ' ')
    fc.assert(fc.property(fc.array(fc.oneof(bits, fc.string()), { maxLength: 12 }), parts => { check(render(parts.join(''))) }), { numRuns: 200 })
  })

  test.each([
    ['quotes in quotes', '>'.repeat(20_000) + 'x'],
    ['lists in lists', Array.from({ length: 300 }, (_, i) => `${' '.repeat(i * 2)}- x`).join('\n')],
    ['brackets', '['.repeat(20_000)],
    ['link starts', '[a]('.repeat(8000)],
    ['stars', '*a '.repeat(8000)],
    ['star pairs', '**a *b '.repeat(4000)],
    ['backticks', Array.from({ length: 800 }, (_, i) => '`'.repeat(i % 90)).join(' ')],
    ['entities', '&#x'.repeat(20_000)],
    ['angle brackets', '<'.repeat(20_000)],
    ['table cells', `|${'a|'.repeat(700)}\n|${'-|'.repeat(700)}\n|${'b|'.repeat(700)}`],
    ['one long line', 'x'.repeat(2_000_000)],
    ['many lines', 'a line of text\n\n'.repeat(20_000)],
    ['one huge block of code', '```\n' + 'x\n'.repeat(300_000)],
  ])('is not slow: %s', (_, text) => {
    const began = performance.now()
    for (const b of new Blocks().of(text).slice(0, 50)) if (b.kind === 'html') check(htmlOf(b.raw))
    expect(performance.now() - began).toBeLessThan(20_000)
  }, 60_000)
})

describe('Markdown', () => {
  test('links say where they go', () => {
    expect(htmlOf('[bank](https://еxample.org)')).toContain('title="https://xn--xample-2of.org/"')
    expect(htmlOf('see https://example.org/a?b=1&c=2')).toContain('href="https://example.org/a?b=1&amp;c=2"')
    expect(address('javascript:alert(1)')).toBeUndefined()
  })

  test('words for an address lead nowhere, and the address is seen', () => {
    for (const md of ['[click](http://evil.example/?d=1)', '[click][1]\n\n[1]: http://evil.example/?d=1', '[**http://bank.example**](http://evil.example/?d=1)']) {
      const html = htmlOf(md)
      expect(html, md).toMatch(/<\/span> \(<a [^>]*>http:\/\/evil\.example\/\?d=1<\/a>\)/)
      expect(html, md).not.toMatch(/<a [^>]*>(?:click|<strong>)/)
    }
    expect(htmlOf('[example.org/a](https://example.org/a)')).toMatch(/<a [^>]*>https:\/\/example\.org\/a<\/a>/)
    expect(htmlOf('[t](javascript:alert)')).toContain('t</span> (javascript:alert)')
  })

  test('a picture is a link', () => {
    expect(htmlOf('![cat](https://example.org/cat.png)')).not.toContain('<img')
    expect(htmlOf('![cat](https://example.org/cat.png)')).toContain('cat ↗</span> (<a')
  })

  test('code shows what is invisible', () => {
    expect(revealed('a\u202Eb')).toBe('a<span class="unseen">U+202E</span>b')
    expect(htmlOf('`a\u200Bb`')).toContain('U+200B')
    expect(revealed('naïve 日本 😀')).toBe('naïve 日本 😀')
  })

  test('headings stand below those of the page', () => {
    expect(htmlOf('# a')).toBe('<h2 class="h1">a</h2>')
  })

  test('an open fence is a block of code from its first line', () => {
    expect(new Blocks().of('text\n\n```go\nfunc')).toMatchObject([{ kind: 'html' }, { kind: 'code', language: 'go', text: 'func', open: true }])
    expect(new Blocks().of('```go\nx\n```\n')).toMatchObject([{ kind: 'code', open: false }])
  })

  const answer = '# Title\n\nSome **bold** text with `code`, a [link](https://example.org) and\nmore.\n\n- one\n- two\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```go\nfunc main() {}\n```\n\nThe end.\n'

  test('cut anywhere, it ends as the whole', () => {
    fc.assert(fc.property(fc.array(fc.nat(answer.length), { maxLength: 12 }), cuts => {
      const b = new Blocks()
      for (const c of cuts.sort((x, y) => x - y)) b.of(answer.slice(0, c))
      expect(b.of(answer).map(x => ({ ...x }))).toEqual(new Blocks().of(answer).map(x => ({ ...x })))
    }))
  })

  test('blocks that stand are the same objects while more is written', () => {
    const b = new Blocks()
    const first = b.of(answer.slice(0, 120))
    const second = b.of(answer)
    for (let i = 0; i < first.length - 1; i++) expect(second[i]).toBe(first[i])
  })

  test('what is begun does not show its marks', () => {
    for (let i = 1; i <= answer.length; i++) {
      const b = new Blocks().of(steady(answer.slice(0, i)))
      const box = document.createElement('div')
      box.innerHTML = b.map(x => (x.kind === 'html' ? htmlOf(x.raw) : '')).join('')
      expect(box.textContent, JSON.stringify(answer.slice(0, i))).not.toMatch(/\*\*|\]\(|^#|`|\|/)
    }
  })

  test('a word is shown when it is whole', () => {
    expect(wholeWords('Hello wor')).toBe('Hello ')
    expect(wholeWords('Hel')).toBe('Hel')
    expect(wholeWords('你好世')).toBe('你好世')
    expect(wholeWords('done.')).toBe('done.')
  })
})
