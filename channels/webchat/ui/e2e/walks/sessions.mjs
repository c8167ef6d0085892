import { mkdir, readdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Telegram } from '../telegram.mjs'
import { answered, answers, composer, mine, send, session, sideBar } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const search = page => page.getByRole('searchbox', { name: 'Search chats' })

export default {
  async 'sessions: new, switch, rename, search, delete'(w) {
    await w.start()
    const page = await w.signedIn()
    await send(page, 'About apples')
    await answered(page, 'You said: About apples')
    await page.getByRole('button', { name: 'New chat', exact: true }).click()
    await page.getByRole('heading', { name: 'What shall we do?' }).waitFor()
    await send(page, 'About pears')
    await answered(page, 'You said: About pears')
    await until('answers in the second', async () => await answers(page).count() === 1)
    await session(page, 'About apples').click()
    await answered(page, 'You said: About apples')
    same(await session(page, 'About apples').getAttribute('aria-current'), 'page', 'the one that is shown')
    await page.goBack()
    await answered(page, 'You said: About pears')

    await sideBar(page).getByRole('button', { name: 'Options of About apples' }).click()
    await page.getByRole('menuitem', { name: 'Rename' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('Orchard')
    await page.getByRole('textbox', { name: 'Name' }).press('Enter')
    await session(page, 'Orchard').waitFor()
    await page.reload()
    await session(page, 'Orchard').waitFor()

    await search(page).fill('orch')
    await session(page, 'About pears').waitFor({ state: 'hidden' })
    await session(page, 'Orchard').waitFor()
    await search(page).fill('zebra')
    await page.getByText('Nothing is found for “zebra”').waitFor()
    await search(page).press('Escape')
    await session(page, 'About pears').waitFor()

    await sideBar(page).getByRole('button', { name: 'Options of Orchard' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const dialog = page.getByRole('alertdialog').or(page.getByRole('dialog'))
    await dialog.getByText('Orchard').waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await session(page, 'Orchard').waitFor({ state: 'hidden' })
    await answered(page, 'You said: About pears')
    await page.reload()
    await session(page, 'About pears').waitFor()
    same(await session(page, 'Orchard').count(), 0, 'the deleted one')
  },

  async 'files: what fills the work folder is seen and removed'(w) {
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Hello')
    await answered(page, 'You said: Hello')
    const work = path.join(w.dir, 'data', 'agents', 'assistant', 'work', 'owner-local')
    await mkdir(path.join(work, 'old/deep'), { recursive: true })
    await writeFile(path.join(work, 'old/deep/a-long-name-of-a-report-that-nobody-needs-any-more-2024-final.pdf'), Buffer.alloc(3 << 20))
    await writeFile(path.join(work, 'notes.txt'), 'words')
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 })
      await page.locator('.chat-bar').getByRole('button', { name: /^Options of/ }).click()
      await page.getByRole('menuitem', { name: 'Files' }).click()
      const dialog = page.getByRole('dialog', { name: 'Files' })
      await dialog.getByRole('meter').waitFor()
      await dialog.getByRole('button', { name: 'old/', exact: true }).waitFor()
      const wide = await dialog.evaluate(d => d.scrollWidth > d.clientWidth)
      check(!wide, `the dialog scrolls sideways at ${width}`)
      await w.picture(page, `files-${width}`)
      if (width !== 390) { await page.keyboard.press('Escape'); continue }
      await dialog.getByRole('button', { name: 'old/', exact: true }).click()
      await dialog.getByRole('button', { name: 'deep/', exact: true }).waitFor()
      await dialog.getByRole('button', { name: 'Back' }).click()
      await dialog.getByRole('button', { name: 'Remove old', exact: true }).click()
      await dialog.getByText('for good?').waitFor()
      await w.picture(page, 'files-asked')
      await dialog.getByRole('button', { name: 'Keep' }).click()
      await dialog.getByRole('button', { name: 'Remove old', exact: true }).click()
      await dialog.getByRole('button', { name: 'Remove', exact: true }).click()
      await dialog.getByRole('button', { name: 'old/', exact: true }).waitFor({ state: 'hidden' })
      await dialog.getByText('notes.txt', { exact: true }).waitFor()
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'hidden' })
    }
    await until('it is removed', async () => !(await readdir(work)).includes('old'))
  },

  async 'what came in elsewhere is unread, on every device until it is read on one'(w) {
    let hold
    w.model.script = async (ask, say) => {
      say(`You said: ${ask.text}`)
      if (ask.text === 'Slowly') await new Promise(ok => { hold = ok })
    }
    await w.start()
    const page = await w.signedIn()
    const phone = await w.page()
    await phone.goto(await w.freshLink())
    await phone.getByRole('button', { name: 'Sign in' }).click()
    await composer(phone).waitFor()
    await send(page, 'Here')
    await answered(page, 'You said: Here')
    const other = (p, words) => sideBar(p).getByRole('link', { name: words })
    await w.api('POST', '/v1/messages', { text: 'From **a program**', session: 'other', wait: 60 })
    for (const p of [page, phone]) await other(p, /^From a program You said: From a program.*unread/).waitFor() // as text, without marks
    await session(page, 'From a program').click()
    await answered(page, 'You said: From')
    for (const p of [page, phone]) await other(p, /^From a program.*unread/).waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'New chat', exact: true }).click()
    await until('it is read', async () => await other(page, /unread/).count() === 0)
    await phone.reload()
    await other(phone, /^From a program/).waitFor()
    await until('nothing is unread after a reload', async () => await other(phone, /unread/).count() === 0)

    // What is written in a chat that nobody looks at is unread only when it stands there; that it runs is another sign.
    await w.api('POST', '/v1/messages', { text: 'Slowly', session: 'other' })
    await other(phone, /^From a program.*running/).waitFor()
    await phone.locator('.side-run').waitFor()
    await until('the model is asked', () => hold)
    hold()
    await other(phone, /^From a program.*unread/).waitFor()
    await phone.locator('.side-run').waitFor({ state: 'hidden' })
    await send(phone, '/help')
    await w.api('POST', '/v1/messages', { text: '/status', session: 'other', wait: 60 })
    await other(phone, /You said: Slowly/).waitFor() // a command is not what was said
  },

  async 'a thousand sessions'(w) {
    await w.start({ data: process.env.PARLEY_LONG })
    const page = await w.signedIn()
    const list = sideBar(page).locator('.side-list')
    await sideBar(page).getByRole('link').first().waitFor()
    const last = session(page, 'Question 0 about a leaking tap')
    await until('the end of the list', async () => {
      await list.evaluate(l => { l.scrollTop = l.scrollHeight })
      return last.isVisible()
    })
    const drawn = await sideBar(page).getByRole('listitem').count()
    check(drawn < 120, `${drawn} lines are drawn`)
    await last.click()
    await answered(page, 'Answer 0.')
    await search(page).fill('Question 777')
    await session(page, 'Question 777 about a leaking tap').click()
    await answered(page, 'Answer 777.')
  },

  async 'ten thousand entries'(w) {
    await w.start({ data: process.env.PARLEY_LONG })
    const page = await w.signedIn()
    await page.goto(`${w.base}/chat/${encodeURIComponent('agent:assistant:local:long')}`)
    await answers(page).getByText('Answer 2500 with code').waitFor()
    const box = page.getByRole('region', { name: /^Conversation/ })
    const atEnd = await box.evaluate(b => b.scrollHeight - b.scrollTop - b.clientHeight)
    check(atEnd < 5, `it opens ${atEnd} px before its end`)
    await box.hover()
    // Frames are counted while somebody scrolls with the wheel.
    const frames = page.evaluate(() => new Promise(ok => {
      const list = []
      let last = performance.now()
      const next = now => { list.push(now - last); last = now; if (list.length < 120) requestAnimationFrame(next); else ok(list) }
      requestAnimationFrame(next)
    }))
    for (let i = 0; i < 40; i++) await page.mouse.wheel(0, -900)
    const sorted = (await frames).sort((a, b) => a - b)
    const drawn = await box.locator('.line').count()
    check(drawn < 80, `${drawn} lines are drawn`)
    // What is read does not move while older messages come in above.
    const still = () => box.evaluate(async b => {
      const line = [...b.querySelectorAll('.line')].find(l => l.getBoundingClientRect().top > b.getBoundingClientRect().top)
      if (!line) return false
      const at = line.getBoundingClientRect().top
      for (let i = 0; i < 10; i++) await new Promise(ok => { requestAnimationFrame(ok) })
      return line.isConnected && Math.abs(line.getBoundingClientRect().top - at) <= 1
    })
    await until('the reading to be still once the wheel is', still)
    await until('its beginning', async () => {
      await box.evaluate(b => { b.scrollTop = 0 })
      return mine(page).getByText('Message 1: a leaking tap?', { exact: true }).isVisible()
    })
    await page.getByRole('button', { name: 'Latest' }).click()
    await answers(page).getByText('Answer 2500 with code').waitFor()
    return `frames while scrolling: median ${sorted[60].toFixed(0)} ms, 95 % ${sorted[114].toFixed(0)} ms`
  },

  async 'a stranger is let in'(w) {
    const tg = await new Telegram().start()
    try {
      await w.start({ config: `channels:\n  - {name: tg, type: telegram, token: "${tg.token}", api_url: "${tg.url}"}` })
      const page = await w.signedIn()
      tg.write(777, 'Ada <img src=x onerror=window.pwned=1>', 'Let me in')
      await sideBar(page).getByRole('link', { name: /Inbox/ }).getByText('1').waitFor()
      await until('the title says so', async () => /^\(1\)/.test(await page.title()))
      await sideBar(page).getByRole('link', { name: /Inbox/ }).click()
      await page.getByText(/Ada </).first().waitFor()
      await page.getByRole('button', { name: /^(Approve|Let in)/ }).first().click()
      const dialog = page.getByRole('alertdialog').or(page.getByRole('dialog'))
      if (await dialog.isVisible()) await dialog.getByRole('button', { name: /Approve|Let/ }).click()
      await sideBar(page).getByRole('link', { name: /Inbox/ }).getByText('1').waitFor({ state: 'hidden' })
      const before = tg.sent.length
      tg.write(777, 'Ada', 'Am I in?')
      await until('the stranger is answered', () => tg.sent.slice(before).some(m => m.text.includes('You said: Am I in?')))
      await sideBar(page).getByRole('link', { name: /Telegram/ }).click()
      await page.getByRole('article').getByText('You said: Am I in?').waitFor()
      same(await page.evaluate(() => window.pwned), undefined, 'window.pwned')
      check(await composer(page).isDisabled() || await composer(page).count() === 0, 'somebody else’s chat can be written in')
      same(await mine(page).getByText('never').count(), 0, 'nothing')
    } finally {
      tg.stop()
    }
  },
}
