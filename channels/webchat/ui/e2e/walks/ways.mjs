import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { gate } from '../model.mjs'
import { answered, answers, composer, mine, send, session, sideBar, stopButton, visit } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// picture is a PNG of 1×1, and so no picture that anybody could complain of.
const picture = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')

// headings of pages whose name is not that of their address.
const headings = { inbox: 'Inbox', sessions: 'All chats', 'agents/assistant': /Assistant/ }

export const pages = ['sessions', 'agents', 'channels', 'people', 'runs', 'usage', 'logs', 'audit', 'config']

// sound fails on what axe-core calls serious or critical. only names the rules to look for; without it all.
async function sound(page, what, found, only) {
  if (!await page.evaluate(() => 'axe' in window)) await page.evaluate(axeSource)
  const bad = await page.evaluate(async only => (await window.axe.run(document, { resultTypes: ['violations'], preload: false, ...(only ? { runOnly: only } : {}) })).violations
    .filter(v => v.impact === 'serious' || v.impact === 'critical').map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => `${n.html.slice(0, 160)} (${n.any.concat(n.all, n.none).map(c => c.message).join('; ').slice(0, 160)})`).join(' | ')}`), only)
  found.push(...bad.map(b => `${what}: ${b}`))
}

const richAnswer = '# Title\n\nSome *text* with `code` and [a link](https://example.org/).\n\n- one\n- two\n\n```go\nfunc f() int { return 1 } // says one\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted'

// tour shows every screen there is and calls look at each.
export async function tour(w, page, look) {
  const half = gate()
  w.model.script = async (ask, say) => {
    if (/steps/.test(ask.text) && ask.round === 0) for (let i = 0; i < 5; i++) say.call('list_dir', { path: i === 4 ? 'no/such' : '.' })
    else if (/slow/.test(ask.text)) { say('A slow answer that goes on and'); await Promise.race([half.open, ask.gone]) } else if (/fail/.test(ask.text)) say.fail(400, 'no')
    else say(richAnswer)
  }
  await look('empty session')
  await send(page, 'Show me steps')
  await answered(page, 'Some text')
  await page.getByRole('button', { name: /^5 steps/ }).click()
  await page.getByRole('button', { name: /^Tool list_dir/ }).last().click()
  await look('answer with steps')
  await page.getByRole('button', { name: 'Show the run' }).last().click()
  await page.getByRole('region', { name: 'Run' }).waitFor()
  await look('run beside the chat')
  await page.getByRole('button', { name: 'Close the panel' }).click()
  await composer(page).press('ArrowUp')
  await page.getByRole('textbox', { name: 'Message to send instead' }).waitFor()
  await look('editing')
  await page.keyboard.press('Escape')
  await send(page, 'fail please')
  await page.getByRole('note').first().waitFor()
  await look('error')
  await send(page, 'slow please')
  await answers(page).getByText('A slow answer').waitFor()
  await look('streaming')
  half.pass()
  await answered(page, 'A slow answer')
  await page.getByRole('button', { name: /^Options of/ }).last().click()
  await look('menu')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: /^Model:/ }).click()
  await page.getByRole('menuitemradio').first().waitFor()
  await look('model picker')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: /^Options of/ }).last().click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await page.getByRole('textbox', { name: 'Name' }).waitFor()
  await look('dialog')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await until('the focus is back', () => page.evaluate(() => document.activeElement !== document.body))
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Go to' }).waitFor()
  await look('palette')
  await page.getByRole('combobox', { name: 'Go to' }).press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await composer(page).fill('/')
  await look('commands')
  await composer(page).fill('')
}

const wellOff = async page => {
  await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  same(await page.getByText(/could not be read|went wrong/i).count(), 0, `${page.url()} failed`)
}

const runOf = async w => (await w.api('POST', '/v1/messages', { text: 'A question', session: 'main', wait: 60 })).id

// Colours are all that a theme changes.
const axe = (colorScheme, only) => async w => {
  await w.start()
  const found = []
  const out = await w.page({ colorScheme })
  await out.goto(w.base)
  await out.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  await sound(out, 'signed out', found, only)
  const page = await w.signedIn({ colorScheme })
  await tour(w, page, what => sound(page, what, found, only))
  const run = await runOf(w)
  for (const where of ['inbox', ...pages, 'models/new', 'channels?add=telegram', 'people?add=person', 'agents/assistant', `runs/${run}`]) {
    await visit(page, `/${where}`)
    await page.getByRole('heading', { level: 1, name: headings[where] ?? new RegExp(where.split(/[/?]/)[0].replace(/s$/, ''), 'i') }).waitFor()
    await wellOff(page)
    await sound(page, where, found, only)
  }
  check(!found.length, `axe-core, ${colorScheme}:\n${found.join('\n')}`)
}

export default {
  'axe-core finds nothing serious, light': axe('light'),
  'axe-core finds nothing serious, dark': axe('dark', ['color-contrast']),

  async 'every page opens and reloads'(w) {
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Hello')
    await answered(page, 'You said: Hello')
    const run = await runOf(w)
    for (const where of pages) {
      const link = sideBar(page).getByRole('link', { name: headings[where] ?? new RegExp(`^${where}$`, 'i') })
      const manage = sideBar(page).getByRole('button', { name: 'Manage' })
      if (where !== 'sessions' && await manage.getAttribute('aria-expanded') === 'false') await manage.click()
      await link.click()
      await page.waitForURL(new RegExp(`/${where}$`))
      await page.getByRole('heading', { level: 1 }).waitFor()
      await wellOff(page)
      const heading = await page.getByRole('heading', { level: 1 }).innerText()
      const title = await page.title()
      check(title.includes(heading), `the title of ${where} is ${title}`)
      await page.reload()
      same(await page.getByRole('heading', { level: 1 }).innerText(), heading, `${where} after a reload`)
      await wellOff(page)
    }
    for (const [where, text] of [['inbox', /Inbox|Nothing/], ['agents/assistant', /Assistant/], ['models/new', /Who serves the model/], ['channels?add=slack', /Add Slack/], ['people?add=person', /Time zone/], [`runs/${run}`, /A question|completed|answered/i]]) {
      await page.goto(`${w.base}/${where}`)
      await page.getByRole('main').getByText(text).first().waitFor()
      await wellOff(page)
    }
    await page.goto(`${w.base}/nothing/here`)
    await page.getByRole('heading', { name: 'There is nothing here' }).waitFor()
    await page.goto(`${w.base}/config`)
    await wellOff(page)
    check(!(await page.content()).includes(w.token), 'the token is in the configuration page')
  },

  async 'attach files'(w) {
    await w.start()
    const page = await w.signedIn()
    const files = page.getByRole('list', { name: 'Files' })
    await page.getByLabel('Files to attach').setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('remember the milk') })
    await files.getByText('notes.txt').waitFor()
    // A picture from the clipboard, and one that is dropped.
    const give = (type, name) => page.evaluate(([type, name, bytes]) => {
      const data = new DataTransfer()
      data.items.add(new File([Uint8Array.from(bytes)], name, { type: 'image/png' }))
      const at = type === 'paste' ? document.querySelector('textarea') : document.querySelector('.chat')
      at.dispatchEvent(type === 'paste' ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }) : new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }))
    }, [type, name, [...picture]])
    await give('paste', 'pasted.png')
    await files.getByText('pasted.png').waitFor()
    await give('dragover', 'dropped.png')
    await page.getByText('Drop files to attach them').waitFor()
    await give('drop', 'dropped.png')
    await files.getByText('dropped.png').waitFor()
    await page.getByLabel('Files to attach').setInputFiles({ name: 'wrong.txt', mimeType: 'text/plain', buffer: Buffer.from('x') })
    await page.getByRole('button', { name: 'Remove wrong.txt' }).click()
    await until('files', async () => await files.getByRole('listitem').count() === 3)
    await until('they are uploaded', async () => await page.getByText('Uploading…').count() === 0)
    await page.reload() // they belong to the draft
    await until('the files after a reload', async () => await files.getByRole('listitem').count() === 3)
    await send(page, 'Look at these')
    await answered(page, 'Look at these')
    const message = mine(page).first()
    await message.getByText('notes.txt').waitFor()
    await until('pictures', async () => await message.getByRole('img').count() === 2)
    await until('the pictures are shown', () => message.getByRole('img').evaluateAll(list => list.every(i => i.complete && i.naturalWidth > 0)))
    const asked = JSON.stringify(w.model.bodies.at(-1))
    check(asked.includes('notes.txt'), 'the model is not told of the file')
    await page.reload()
    await answered(page, 'Look at these')
    await until('pictures after a reload, files in the composer', async () => await message.getByRole('img').count() === 2 && await files.count() === 0)
    const stranger = await w.page()
    await stranger.goto(w.base)
    same(await stranger.evaluate(async src => (await fetch(src)).status, await message.getByRole('img').first().getAttribute('src')), 401, 'a picture without a sign-in')
  },

  async 'with the keyboard alone'(w) {
    const half = gate()
    w.model.script = async (ask, say) => {
      say(`You said: ${ask.text}`)
      if (ask.text === 'slowly') await Promise.race([half.open, ask.gone])
    }
    await w.start()
    const page = await w.page()
    await page.goto(w.link)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    await page.keyboard.press('Enter') // it has the focus
    await composer(page).waitFor()
    await until('the composer has the focus', () => composer(page).evaluate(e => e === document.activeElement))
    await page.keyboard.type('first line')
    await page.keyboard.press('Shift+Enter')
    await page.keyboard.type('second line')
    await page.keyboard.press('Enter')
    await answered(page, 'first line')
    same((await mine(page).first().locator('.bubble').innerText()).split('\n'), ['first line', 'second line'], 'lines')
    await until('the composer has the focus again', () => composer(page).evaluate(e => e === document.activeElement))
    await page.keyboard.type('slowly')
    await page.keyboard.press('Enter')
    await answers(page).getByText('You said: slow').waitFor() // its last letters are kept back while a secret may begin with them
    await stopButton(page).waitFor()
    await page.keyboard.press('Escape') // stops
    await answers(page).getByText('Stopped here').waitFor()
    await page.keyboard.press('ArrowUp') // edits the last
    await page.getByRole('textbox', { name: 'Message to send instead' }).waitFor()
    await page.keyboard.type(' but surely')
    await page.keyboard.press('Enter')
    await answered(page, 'You said: slowly but surely')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Go to' }).waitFor()
    await page.keyboard.type('new chat')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'What shall we do?' }).waitFor()
    await page.keyboard.type('another')
    await page.keyboard.press('Enter')
    await answered(page, 'You said: another')
    await page.keyboard.press('Alt+ArrowDown') // to the session below
    await answered(page, 'You said: slowly but surely')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('runs')
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/runs$/)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('another')
    await page.getByRole('option', { name: 'another' }).first().waitFor()
    await page.keyboard.press('Enter')
    await answered(page, 'You said: another')
    await page.keyboard.type('/')
    await page.getByRole('listbox', { name: 'Commands' }).waitFor()
    await page.keyboard.type('statu')
    await page.keyboard.press('Tab')
    same((await composer(page).inputValue()).trim(), '/status', 'the completed command')
    await page.keyboard.press('Enter')
    await page.getByRole('article', { name: 'Command /status' }).waitFor()
    // Every stop of the Tab key can be seen.
    for (let i = 0; i < 25; i++) {
      await page.keyboard.press('Tab')
      const seen = await page.evaluate(() => {
        const e = document.activeElement
        if (!e || e === document.body) return 'nothing'
        const s = getComputedStyle(e), r = e.getBoundingClientRect()
        const within = [...(function* () { for (let p = e; p; p = p.parentElement) yield p })()].some(p => { const c = getComputedStyle(p); return c.outlineStyle !== 'none' && parseFloat(c.outlineWidth) > 0 || c.boxShadow !== 'none' })
        return r.width > 0 && r.height > 0 && s.visibility === 'visible' && Number(s.opacity) > 0 && within ? 'seen' : e.outerHTML.slice(0, 200)
      })
      check(seen === 'seen' || seen === 'nothing', `the focus cannot be seen on ${seen}`)
    }
  },

  async 'on a phone'(w) {
    await w.start()
    const page = await w.signedIn({ width: 360, height: 740, hasTouch: true, isMobile: true })
    const wide = async what => {
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      check(over <= 0, `${what} is ${over} px too wide`)
    }
    const small = async what => {
      const list = await page.evaluate(() => [...document.querySelectorAll('button, a[href], input, [role=menuitem], [role=option]')].filter(e => {
        const r = e.getBoundingClientRect(), s = getComputedStyle(e)
        return r.width > 1 && r.height > 1 && s.visibility === 'visible' && r.right > 0 && r.left < innerWidth && r.bottom > 0 && r.top < innerHeight && !e.closest('.md') && !e.closest('[inert],[aria-hidden=true]') && (r.height < 40 || r.width < 40)
      }).map(e => `${(e.getAttribute('aria-label') ?? e.textContent).slice(0, 40)} ${Math.round(e.getBoundingClientRect().width)}×${Math.round(e.getBoundingClientRect().height)}`))
      check(!list.length, `${what}: hard to hit: ${list.join(', ')}`)
    }
    w.model.script = async (_, say) => { say(`${richAnswer}\n\n| a rather wide table | with many words | in each of | its many columns |\n|---|---|---|---|\n| ${'word '.repeat(12)}| ${'word '.repeat(12)}| x | y |\n\n\`\`\`\n${'long '.repeat(60)}\n\`\`\`\n\n${'w'.repeat(200)}`) }
    await wide('the empty chat')
    await small('the empty chat')
    await composer(page).fill('Hello')
    await page.getByRole('button', { name: 'Send' }).tap()
    await answered(page, 'Some text')
    await wide('an answer')
    await small('an answer')
    await page.getByRole('button', { name: 'Show the run' }).first().tap()
    await page.getByRole('region', { name: 'Run' }).waitFor()
    await wide('the run')
    await page.getByRole('button', { name: 'Close the panel' }).tap()
    await page.getByRole('button', { name: 'Open the side bar' }).tap()
    await session(page, 'Hello').waitFor()
    await wide('the side bar')
    await small('the side bar')
    await sideBar(page).getByRole('button', { name: 'New chat', exact: true }).tap()
    await page.getByRole('heading', { name: 'What shall we do?' }).waitFor()
    await page.getByRole('button', { name: 'Open the side bar' }).tap()
    await session(page, 'Hello').tap()
    await answered(page, 'Some text')
    const run = await runOf(w)
    for (const where of [...pages, 'inbox', 'models/new', 'channels?add=telegram', 'people?add=person', 'agents/assistant', `runs/${run}`]) {
      await visit(page, `/${where}`)
      await page.getByRole('heading', { level: 1, name: headings[where] ?? new RegExp(where.split(/[/?]/)[0].replace(/s$/, ''), 'i') }).waitFor()
      await wellOff(page)
      await wide(where)
    }
  },
}
