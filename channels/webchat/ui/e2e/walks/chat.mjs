import { gate } from '../model.mjs'
import { againButton, answered, answers, bodyOf, composer, editButton, mine, send, stopButton } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const places = answer => bodyOf(answer).evaluate(md => [...md.children].map(b => {
  const r = b.getBoundingClientRect(), top = md.getBoundingClientRect().top
  return { text: b.textContent.trim(), top: Math.round(r.top - top), height: Math.round(r.height), width: Math.round(r.width) }
}))

export default {
  async 'chat and stream'(w) {
    const steps = Array.from({ length: 5 }, gate)
    w.model.script = async (_, say) => {
      say('# A title\n\nThe first paragraph is long enough to go over more than one line of the reading column, and it')
      await steps[0].open
      say(' stands.\n\nHere is code:\n\n```go\nfunc answer() int {')
      await steps[1].open
      say('\n\treturn 42\n}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |')
      await steps[2].open
      say('\n\nAnd a last **word')
      await steps[3].open
      say('** of it.')
      await steps[4].open
    }
    await w.start()
    const page = await w.signedIn()
    await page.getByRole('heading', { name: 'What shall we do?' }).waitFor()
    await send(page, 'Tell me everything')
    const answer = answers(page).first()
    await answer.getByText('The first paragraph').waitFor()
    same(await answer.getAttribute('aria-busy'), 'true', 'while it grows')
    same((await places(answer))[0].text, 'A title', 'first block')
    const title = (await places(answer))[0]
    steps[0].pass()
    await answer.locator('.code').getByText('func answer').waitFor() // a block of code from its first line
    same((await places(answer))[0], title, 'the title moved')
    const before = (await places(answer)).slice(0, 3) // title, paragraph, "Here is code"
    check(/and it stands\.$/.test(before[1].text), `the paragraph is ${before[1].text}`)
    steps[1].pass()
    await answer.getByRole('table').waitFor()
    same((await places(answer)).slice(0, 3), before, 'what stood moved')
    steps[2].pass()
    await answer.getByText('And a last').waitFor()
    check(!(await bodyOf(answer).textContent()).includes('**'), 'an open mark is shown')
    const stood = (await places(answer)).slice(0, 5)
    steps[3].pass()
    await answer.getByText('of it.').waitFor()
    same((await places(answer)).slice(0, 5), stood, 'what stood moved')
    const grown = (await places(answer)).map(p => p.text)
    steps[4].pass()
    await answered(page, 'A title')
    same((await places(answer)).map(p => p.text), grown, 'the whole answer')
    await until('messages', async () => await answers(page).count() === 1 && await mine(page).count() === 1)
    await answer.getByText('main', { exact: true }).waitFor() // model and tokens under it
    await answer.getByText(/120 → 30 tokens/).waitFor()
    await page.waitForURL(/\/chat\//)
    await page.reload()
    const again = await answered(page, 'A title')
    same((await places(again)).map(p => p.text), grown, 'after a reload')
    check((await page.title()).includes('Tell me everything'), `the title is ${await page.title()}`)
  },

  async 'agent, model and thinking are chosen'(w) {
    w.model.script = async (ask, say) => {
      say(`${ask.body.model} ${ask.body.reasoning_effort ?? 'by itself'}`)
      if (ask.text === 'Slowly') await ask.gone
    }
    await w.start({ config: url => `
  - {name: small, base_url: "${url}", model: gpt-5-mini}
agents:
  - {id: assistant, name: Assistant, default: true, model: main, models: [small]}
  - {id: research, name: Research, model: small, models: [main]}` })
    const page = await w.signedIn()
    const other = await w.page({ context: page.context() })
    await other.goto(w.base)
    const model = (p, name) => p.getByRole('button', { name: `Model: ${name}` })
    const pick = async (p, name, item) => { await model(p, name).click(); await p.getByRole('menuitemradio', { name: item }).click() }

    // A new chat goes to whom it says, with what was chosen before its first message.
    await page.getByRole('button', { name: 'Agent: Assistant' }).click()
    await page.getByRole('menuitemradio', { name: /Research/ }).click()
    await page.getByText('Research answers here').waitFor()
    await pick(page, 'small', /^main/)
    await model(page, 'main').waitFor()
    await send(page, 'Hello')
    const research = page.getByRole('article', { name: /^Research/ })
    await research.getByText('test-model by itself').waitFor()
    await model(page, 'main').waitFor()

    // By the keyboard alone; every page shows it, and the next message is asked with it.
    await other.goto(page.url())
    await model(other, 'main').waitFor()
    await model(page, 'main').focus()
    await page.keyboard.press('Enter')
    await page.getByRole('menuitemradio', { name: /^small/ }).waitFor()
    await page.getByText('main was chosen for this chat.').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Home')
    await page.keyboard.press('Enter')
    await model(page, 'small').waitFor()
    await model(other, 'small').waitFor()
    await pick(other, 'small', /^High$/)
    await model(page, 'small high').waitFor()
    await send(page, 'And now')
    await research.getByText('gpt-5-mini high').waitFor()

    // What is changed while an answer is written holds from the next message, and the page says so.
    await send(page, 'Slowly')
    await until('it is asked', () => w.model.bodies.some(b => JSON.stringify(b.messages).includes('Slowly')))
    await model(page, 'small high').click()
    await page.getByText('A change holds from the next message.').waitFor()
    await page.getByRole('menuitemradio', { name: /^main/ }).click()
    await page.getByText('This holds from the next message.').waitFor()
    await model(page, 'main').waitFor()
    await stopButton(page).click()
    await page.getByText('Stopped here').waitFor()
    await send(page, 'Again')
    await research.getByText('test-model high').waitFor()

    await page.setViewportSize({ width: 390, height: 740 })
    await model(page, 'main').click()
    const sheet = page.getByRole('menu')
    await sheet.getByText('High', { exact: true }).waitFor()
    const box = await sheet.boundingBox()
    same([box.x, box.width, Math.round(box.y + box.height)], [0, 390, 740], 'the sheet')
    await page.keyboard.press('Escape')
  },

  async 'stop keeps what was said'(w) {
    let gone = false
    w.model.script = async (ask, say) => {
      if (ask.text !== 'Count to a thousand') { say('Next answer.'); return }
      say('One, two, three and ')
      await ask.gone
      gone = true
    }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Count to a thousand')
    await answers(page).getByText('One, two, three').waitFor()
    await page.evaluate(() => {
      window.stopped = new Promise(ok => {
        let began
        document.addEventListener('click', () => { began ??= performance.now() }, { capture: true })
        new MutationObserver(() => { if (began && document.body.innerText.includes('Stopped here')) ok(performance.now() - began) }).observe(document.body, { subtree: true, childList: true, characterData: true })
      })
    })
    await stopButton(page).click()
    const took = Math.round(await page.evaluate(() => window.stopped))
    check(took < 5000, `it took ${took} ms until it was stopped`) // 300 ms on a machine with nothing else to do: see make bench
    const answer = answers(page).first()
    await answer.getByText('One, two, three and').waitFor()
    await until('the model is let go', () => gone)
    same(await stopButton(page).count(), 0, 'stop buttons')
    await send(page, 'Go on')
    await answered(page, 'Next answer.')
    await page.reload()
    await answered(page, 'Next answer.')
    await answers(page).first().getByText('Stopped here').waitFor()
    check((await answers(page).first().innerText()).includes('One, two, three and'), 'what was said is gone')
    return `stopped after ${took} ms`
  },

  async 'edit and send again'(w) {
    await w.start()
    const page = await w.signedIn()
    await send(page, 'The first question')
    await answered(page, 'You said: The first question')
    await send(page, 'A second one')
    await answered(page, 'You said: A second one')
    await mine(page).first().hover()
    await editButton(mine(page).first()).click()
    const field = page.getByRole('textbox', { name: 'Message to send instead' })
    same(await field.inputValue(), 'The first question', 'what is edited')
    await field.fill('A better question')
    await field.press('Enter')
    await answered(page, 'You said: A better question')
    await until('the old branch is out of the way', async () => await answers(page).count() === 1 && await mine(page).count() === 1)
    const versions = page.getByRole('group', { name: 'Version 2 of 2' })
    await versions.getByRole('button', { name: 'Version before' }).click()
    await answered(page, 'You said: A second one')
    await page.getByText('This is an earlier version of the chat').waitFor()
    await until('answers and composers in the old version', async () => await answers(page).count() === 2 && await composer(page).count() === 0)
    await page.reload()
    await answered(page, 'You said: The first question')
    await page.getByRole('button', { name: 'To the newest' }).click()
    await answered(page, 'You said: A better question')
    await send(page, 'And on')
    await answered(page, 'You said: And on')
    check(!JSON.stringify(w.model.bodies.at(-1)).includes('A second one'), 'the model was told of the other branch')
  },

  async 'answer again'(w) {
    let n = 0
    w.model.script = async (_, say) => { say(`Try ${++n}.`) }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Surprise me')
    const first = await answered(page, 'Try 1.')
    await first.hover()
    await againButton(first).click()
    await answered(page, 'Try 2.')
    await until('one answer', async () => await answers(page).count() === 1 && await mine(page).count() === 1)
    await page.getByRole('group', { name: 'Version 2 of 2' }).getByRole('button', { name: 'Version before' }).click()
    await answered(page, 'Try 1.')
    await until('answers in the old version', async () => await answers(page).count() === 1)
    same(n, 2, 'calls of the model')
  },

  async 'tool calls open'(w) {
    w.model.script = async (ask, say) => {
      if (ask.round === 0) for (let i = 1; i <= 5; i++) say.call(i === 3 ? 'read_file' : 'list_dir', { path: i === 3 ? 'missing.txt' : '.' })
      else say('All looked at.')
    }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Look around')
    await answered(page, 'All looked at.')
    const folded = page.getByRole('button', { name: /^5 steps/ })
    same(await folded.getAttribute('aria-expanded'), 'false', 'folded')
    check((await folded.innerText()).includes('1 failed'), 'a failed one is not counted')
    await folded.click()
    const read = page.getByRole('button', { name: /^Tool read_file missing\.txt/ })
    await until('steps', async () => await page.getByRole('button', { name: /^Tool / }).count() === 5)
    await read.click()
    await page.getByRole('region', { name: 'Arguments' }).getByText('missing.txt').waitFor()
    await page.getByRole('region', { name: 'Error' }).waitFor()
  },

  async 'an error says what to do'(w) {
    w.model.script = async (ask, say) => { ask.text === 'Fail' ? say.fail(401, 'bad key') : say('Well again.') }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Fail')
    const note = page.getByRole('note').first()
    await note.waitFor()
    check(/model|key|main/i.test(await note.innerText()), `it says: ${await note.innerText()}`)
    await until('notes of one failure', async () => await page.getByRole('note').count() === 1)
    await note.getByRole('button', { name: 'Try again' }).waitFor()
    await page.getByRole('button', { name: 'Show the run' }).click()
    await page.getByRole('region', { name: 'Run' }).waitFor()
    await send(page, 'And now?')
    await answered(page, 'Well again.')
  },

  // An answer is a stranger's text: nothing of it runs, nothing of it is loaded, nothing of it looks like the page.
  async 'hostile Markdown does nothing'(w) {
    const evil = 'http://evil.example'
    w.model.script = async (_, say) => {
      say([
        `<script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"><svg onload="window.pwned = 3"><iframe src="${evil}/frame"></iframe>`,
        `![a picture](${evil}/p.png)`, `<img src="${evil}/raw.png">`, `<style>@import url(${evil}/s.css); body { display: none }</style><link rel=stylesheet href="${evil}/l.css">`,
        `[click](javascript:window.pwned=4) [click](JaVaScRiPt&#58;window.pwned=5) [click](data:text/html,<script>parent.pwned=6</script>) [click](vbscript:x)`,
        `<a href="${evil}" onclick="window.pwned=7">raw</a> <form action="${evil}"><input name=q><button>Sign in</button></form>`,
        `<div style="position:fixed;inset:0;background:url(${evil}/bg.png)">over</div> <base href="${evil}/"> <meta http-equiv=refresh content="0;url=${evil}">`,
        `[a link](${evil}/page "title") <${evil}/auto> ${evil}/bare`, '```html\n<script>window.pwned = 8</script>\n```', '`<b onmouseover="window.pwned=9">`', '<details open ontoggle="window.pwned=10"><summary>x</summary></details>',
        '| <img src=y onerror=window.pwned=11> | b |\n|---|---|\n| <video src=z onerror=window.pwned=12></video> | [x](javascript:window.pwned=13) |', 'The end of it.',
      ].join('\n\n'))
    }
    await w.start()
    const page = await w.signedIn()
    await send(page, '<img src=x onerror="window.pwned=14"> <script>window.pwned=15</script>')
    const answer = await answered(page, 'The end of it.')
    for (const link of await answer.getByRole('link').all()) {
      const href = await link.getAttribute('href')
      check(/^https?:\/\//.test(href), `a link leads to ${href}`)
      check(/noopener/.test(await link.getAttribute('rel')), `a link without noopener: ${href}`)
    }
    const found = await bodyOf(answer).evaluate(a => ({ bad: [...a.querySelectorAll('script,style,link,iframe,form,input,base,meta,svg,video,object,embed,[style],[onclick],[onerror],[onload],[ontoggle]')].map(e => e.outerHTML),
      images: [...a.querySelectorAll('img')].map(i => i.src), links: a.querySelectorAll('a').length }))
    same([found.bad, found.images], [[], []], 'what is in the answer')
    check(found.links >= 3, `links: ${found.links}`)
    same(await answer.getByRole('link', { name: 'click' }).count(), 0, 'links that run something')
    await answer.getByText('click').first().click()
    await answer.hover()
    same(await page.evaluate(() => window.pwned), undefined, 'window.pwned')
    check(await composer(page).isVisible() && page.url().startsWith(w.base), 'the page is gone')
    await page.reload()
    await answered(page, 'The end of it.')
    same(await page.evaluate(() => window.pwned), undefined, 'window.pwned after a reload')
  },

  async 'right to left'(w) {
    w.model.script = async (_, say) => { say('שלום, זו תשובה בעברית.\n\nAnd one in English.\n\n```go\nx := 1\n```') }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'مرحبا، كيف حالك؟')
    const answer = await answered(page, 'And one in English.')
    const direction = l => l.evaluate(e => getComputedStyle(e).direction)
    same(await direction(mine(page).first().getByText('مرحبا')), 'rtl', 'the message')
    same(await direction(answer.getByText('שלום')), 'rtl', 'the answer')
    same(await direction(answer.getByText('And one in English.')), 'ltr', 'an English paragraph in it')
    same(await direction(answer.locator('pre')), 'ltr', 'code')
    same(await direction(page.locator('html')), 'ltr', 'the page')
  },
}
