import { Model } from '../model.mjs'
import { answered, composer, mine, send, sideBar, visit } from '../page.mjs'
import { Telegram } from '../telegram.mjs'
import { check, same, until } from '../world.mjs'

const evil = 'upstream **exploded** <img src=x onerror=window.pwned=1> [here](http://evil.example) \u202Egnp.exe'
const failing = page => page.locator('.note.failing')
const again = page => failing(page).getByRole('button', { name: 'Try again' })

// begin has a model main that does what a message wants of it, and a model spare that answers.
async function begin(w, more = '') {
  const spare = await new Model().start()
  w.fakes.push({ end: () => { spare.stop() } })
  spare.script = async (ask, say) => { say(`Spare says: ${ask.text}`) }
  w.asked = {}
  w.broken = true
  w.model.script = async (ask, say) => {
    const what = /^Please (\w+)/.exec(ask.text)?.[1]
    w.asked[what] = (w.asked[what] ?? 0) + 1
    if (!w.broken || what === undefined) { say(`You said: ${ask.text}`); return }
    switch (what) {
      case '500': say.fail(500, evil); break
      case '401': say.fail(401, 'Incorrect API key provided'); break
      case '429': say.fail(429, 'Rate limit reached', { 'Retry-After': '300' }); break
      case 'hang': await ask.gone; break
      case 'break': say('Half an ans'); await new Promise(ok => { setTimeout(ok, 50) }); say.cut(); break
    }
  }
  await w.start({ config: `  - {name: spare, base_url: "${spare.url}", model: spare-model}
agents:
  - {id: assistant, name: Assistant, default: true, model: main, models: [spare]}
${more}` })
}

// tab is another window of the same browser.
async function tab(w, page, where = w.base) {
  const other = await w.page({ context: page.context() })
  await other.goto(where)
  await composer(other).waitFor()
  return other
}

// choose takes another model for the chat, by the row that says that its own fails. When the turn ends that row becomes another
// one, and a menu that is open goes with it: then it is opened again.
async function choose(page, name) {
  const item = page.getByRole('menuitemradio', { name }), soon = { timeout: 5000 }
  await until('another model', async () => {
    if (!await item.isVisible()) await failing(page).getByRole('button', { name: 'Use another model' }).click(soon).catch(() => {})
    return await item.click(soon).then(() => true, () => false)
  })
}

// others are three chats that go on meanwhile, one of them somebody else's on Telegram.
async function others(w, tg, page, round) {
  const before = tg.sent.length
  tg.write(777, 'Ada', `Hello ${round}`)
  const [, told] = await Promise.all([
    until(`an answer on Telegram ${round}`, () => tg.sent.slice(before).some(m => m.text.includes(`You said: Hello ${round}`))),
    w.api('POST', '/v1/messages', { text: `Hi ${round}`, session: 'other', wait: 60 }),
    (async () => { await send(page, `Well ${round}`); await answered(page, `You said: Well ${round}`) })(),
  ])
  check(told.text.includes(`You said: Hi ${round}`), `the other chat was told: ${told.text}`)
}

export default {
  async 'a failing model is said at once'(w) {
    const tg = await new Telegram().start()
    w.fakes.push({ end: () => { tg.stop() } })
    await begin(w, `channels:\n  - {name: tg, type: telegram, token: "${tg.token}", api_url: "${tg.url}", access: {dm: open}}`)
    const page = await w.signedIn(), calm = await tab(w, page)
    const began = Date.now()
    await send(page, 'Please 500')
    const row = failing(page)
    await row.getByText('Main answers 500').waitFor()
    const took = Date.now() - began
    check(took < 20_000, `it was said after ${took} ms`)
    await row.getByText('Code 500 · model main').waitFor()
    await row.getByText('upstream **exploded** <img src=x onerror=window.pwned=1> [here](http://evil.example)').waitFor() // as text, whatever it looks like
    same(await row.locator('a, img, em').count(), 0, 'what the words of the server have made')
    check(!(await row.innerText()).includes('\u202e'), 'it turns the text around')
    await sideBar(calm).getByText('1', { exact: true }).first().waitFor()
    await page.reload()
    await row.getByText('Main answers 500').waitFor()
    const second = await tab(w, page, page.url())
    await failing(second).getByText('Main answers 500').waitFor()
    await others(w, tg, calm, 'while it fails')
    await row.getByText(/^I couldn’t|^I couldn't reach the model: main answers 500/).waitFor() // six failures, or a minute
    same(w.asked[500], 6, 'tries')
    await visit(calm, '/inbox')
    await calm.getByRole('heading', { name: 'Models that fail' }).waitFor()
    await calm.getByText('Main answers 500').waitFor()
    // the end is tried again once, though two tabs want it
    const wanted = mine(page).count()
    await Promise.all([again(page).click(), again(second).click()])
    await row.getByText('Main answers 500').waitFor()
    await until('one message', async () => await mine(page).count() === await wanted)
    await choose(page, /^spare/)
    await answered(page, 'Spare says: Please 500')
    await answered(second, 'Spare says: Please 500')
    await until('nothing waits', async () => await calm.getByText('Nothing waits for you').or(calm.getByRole('heading', { name: 'Models that fail' })).first().isVisible() && !(await calm.getByRole('heading', { name: 'Models that fail' }).isVisible()))
    same(await page.evaluate(() => window.pwned), undefined, 'something ran')
    return `said ${took} ms after it was sent`
  },

  async 'a refused key, a wait, a hang and a cut are said'(w) {
    const tg = await new Telegram().start()
    w.fakes.push({ end: () => { tg.stop() } })
    await begin(w, `channels:\n  - {name: tg, type: telegram, token: "${tg.token}", api_url: "${tg.url}", access: {dm: open}}`)
    const page = await w.signedIn(), calm = await tab(w, page)
    await send(page, 'Please 401')
    await failing(page).getByText(/main refuses the key \(401\)/).waitFor()
    await again(page).click()
    await until('a second try', () => w.asked[401] === 2)
    await failing(page).getByText(/main refuses the key \(401\)/).waitFor()
    w.broken = false
    await again(page).click()
    await answered(page, 'You said: Please 401')
    w.broken = true

    await visit(page, '/')
    await send(page, 'Please 429')
    await failing(page).getByText('Main takes no more requests for now (429)').waitFor()
    await failing(page).getByText(/it asks to wait, next try in \d+ s/).waitFor()
    await again(page).click()
    await until('a try without the wait', () => w.asked[429] === 2)
    await others(w, tg, calm, 'while it waits')
    await w.kill()
    await w.run()
    await until('a try after the restart', () => w.asked[429] === 3)
    await failing(page).getByText('Main takes no more requests for now (429)').waitFor()
    await again(page).click()
    await until('a try without the wait, after the restart', () => w.asked[429] >= 4)
    await choose(page, /^spare/)
    await answered(page, 'Spare says: Please 429')

    await visit(page, '/')
    const began = Date.now()
    await send(page, 'Please hang')
    await failing(page).getByText(/No answer from main/).waitFor()
    const took = Date.now() - began
    check(took > 9000 && took < 20_000, `silence was said after ${took} ms`)
    await page.reload()
    await failing(page).getByText(/No answer from main/).waitFor()
    await others(w, tg, calm, 'while it hangs')
    await failing(page).getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped before an answer.').waitFor()

    await visit(page, '/')
    await send(page, 'Please break')
    await failing(page).getByText('The connection to main broke off in the middle of an answer').waitFor()
    w.broken = false
    await answered(page, 'You said: Please break')
    await composer(page).waitFor()
    return `silence was said after ${took} ms`
  },
}
