import { gate } from '../model.mjs'
import { answered, answers, bodyOf, composer, mine, send, session } from '../page.mjs'
import { check, same, until } from '../world.mjs'

// recorded are the stored events of the one session there is.
async function recorded(w) {
  const { items: [s] } = await w.api('GET', '/v1/sessions')
  return (await w.api('GET', `/v1/sessions/${encodeURIComponent(s.key)}/entries?limit=500`)).items
}

export default {
  async 'the gateway is killed in the middle of an answer'(w) {
    let n = 0
    w.model.script = async (ask, say) => {
      if (ask.text !== 'A long one') { say(`You said: ${ask.text}`); return }
      if (++n > 1) { say('The beginning and the end.'); return }
      say('The beginning and ')
      await ask.gone
    }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Before')
    await answered(page, 'You said: Before')
    await send(page, 'A long one')
    await answers(page).getByText('The beginning and').waitFor()
    await w.kill()
    await page.getByText('What you write is kept, and sent later.').waitFor()
    await send(page, 'Written while it was away')
    await mine(page).getByText('Waits until Parley is back').waitFor()
    await w.run()
    await answered(page, 'The beginning and the end.')
    await answered(page, 'You said: Written while it was away')
    await until('each message and answer is there once', async () => await mine(page).count() === 3 && await answers(page).count() === 3)
    same((await answers(page).locator('.md').allInnerTexts()).map(t => t.trim()), ['You said: Before', 'The beginning and the end.', 'You said: Written while it was away'], 'answers')
    await page.getByText('What you write is kept').waitFor({ state: 'hidden' })
    const events = await recorded(w)
    same(events.map(e => e.sequence), events.map((_, i) => i + 1), 'sequences')
    const said = role => events.filter(e => e.type === 'item.completed' && e.data.item.role === role).length
    same([said('user'), said('assistant')], [3, 3], 'what is stored')
    await page.reload()
    await answered(page, 'You said: Written while it was away')
    await until('after a reload', async () => await mine(page).count() === 3 && await answers(page).count() === 3)
  },

  // What draws a conversation comes behind the composer, and is asked for again when it does not come.
  async 'the page is cut off while it loads'(w) {
    await w.start()
    const signedIn = await w.signedIn()
    const page = await w.page({ context: signedIn.context() })
    let cut = true
    await page.route(/\/assets\/conversation-view-/, route => (cut ? route.abort() : route.continue()))
    await page.goto(w.base)
    await send(page, 'Hello')
    await page.getByRole('status', { name: 'Loading the conversation' }).waitFor()
    cut = false
    await answered(page, 'You said: Hello')
  },

  async 'offline'(w) {
    await w.start()
    const page = await w.signedIn()
    await send(page, 'Hello')
    await answered(page, 'You said: Hello')
    await w.kill() // first: Chromium keeps an open socket open when it is made offline, and may then leave its end unread
    await page.getByText('What you write is kept, and sent later.').waitFor()
    await page.context().setOffline(true)
    await page.getByText('You are offline.').waitFor()
    await page.getByText('Offline: what you send waits here').waitFor()
    await send(page, 'One from the train')
    await send(page, 'Another one')
    await until('both wait', async () => await mine(page).getByText('Waits until Parley is back').count() === 2)
    await composer(page).fill('A draft')
    await w.run()
    const before = w.model.asked
    await page.context().setOffline(false)
    await until('both are answered or told', async () => (await recorded(w)).filter(e => e.type === 'item.completed' && e.data.item.role === 'user').length === 3)
    await until('nothing is on its way', async () => await page.getByRole('article', { name: 'You, on its way' }).count() === 0 && await mine(page).count() === 3)
    await answers(page).getByText('Another one').waitFor()
    check(w.model.asked > before, 'nobody asked the model')
    same(await composer(page).inputValue(), 'A draft', 'the draft')
    same((await recorded(w)).filter(e => e.type === 'item.completed' && e.data.item.role === 'user').map(e => e.data.item.parts.map(p => p.text).join('')), ['Hello', 'One from the train', 'Another one'], 'what is stored')
  },

  async 'the draft survives a reload'(w) {
    await w.start()
    const page = await w.signedIn()
    await composer(page).fill('Half a thought in a new chat')
    await page.reload()
    same(await composer(page).inputValue(), 'Half a thought in a new chat', 'draft of the new chat')
    await composer(page).press('Enter')
    await answered(page, 'You said: Half a thought')
    same(await composer(page).inputValue(), '', 'the composer after sending')
    await composer(page).fill('And another half')
    await page.getByRole('button', { name: 'New chat', exact: true }).click()
    await page.getByRole('heading', { name: 'What shall we do?' }).waitFor()
    same(await composer(page).inputValue(), '', 'draft of the next new chat')
    await session(page, 'Half a thought in a new chat').click()
    await answered(page, 'You said: Half a thought')
    same(await composer(page).inputValue(), 'And another half', 'draft of the session')
    await page.reload()
    same(await composer(page).inputValue(), 'And another half', 'draft of the session after a reload')
  },

  async 'two tabs in step'(w) {
    const half = gate()
    w.model.script = async (ask, say) => {
      say(`Answer to ${ask.text}`)
      if (ask.text === 'slowly') { await half.open; say(' is whole.') }
    }
    await w.start()
    const one = await w.signedIn()
    await send(one, 'first')
    await answered(one, 'Answer to first')
    const two = await w.page({ context: one.context() })
    await two.goto(one.url())
    await answered(two, 'Answer to first')
    await two.bringToFront()
    await send(two, 'slowly')
    for (const page of [one, two]) {
      await answers(page).getByText('Answer to slow').waitFor()
      await page.getByRole('button', { name: 'Stop' }).waitFor()
    }
    const third = await w.page({ context: one.context() }) // comes in the middle
    await third.goto(one.url())
    await answers(third).getByText('Answer to slow').waitFor()
    half.pass()
    for (const page of [one, two, third]) {
      const whole = await answered(page, 'is whole.')
      same((await bodyOf(whole).innerText()).trim(), 'Answer to slowly is whole.', 'the answer')
      await until('each once', async () => await mine(page).count() === 2 && await answers(page).count() === 2)
    }
    await two.bringToFront() // a tab behind draws a frame a second
    await two.getByRole('button', { name: /^Options of first/ }).first().click()
    await two.getByRole('menuitem', { name: 'Rename' }).click()
    await two.getByRole('textbox', { name: 'Name' }).fill('Named in the other tab')
    await two.getByRole('button', { name: 'Rename' }).click()
    await session(one, 'Named in the other tab').waitFor()
    await two.getByRole('button', { name: /^Options of Named/ }).first().click()
    await two.getByRole('menuitem', { name: 'Delete' }).click()
    await two.getByRole('button', { name: 'Delete', exact: true }).click()
    await session(one, 'Named in the other tab').waitFor({ state: 'hidden' })
  },

  async 'a message waits for its turn'(w) {
    const first = gate()
    w.model.script = async (ask, say) => {
      say(`Said ${ask.n}. `)
      if (ask.n === 1) await first.open
    }
    await w.start({ config: 'sessions: {queue: {mode: followup}}' }) // by default it is handed to the running turn
    const page = await w.signedIn()
    await send(page, 'Take your time')
    await answers(page).getByText('Said 1.').waitFor()
    await send(page, 'One more thing')
    await page.getByText('Stored, waits for its turn').waitFor()
    first.pass()
    await until('nothing is on its way', async () => await page.getByRole('article', { name: 'You, on its way' }).count() === 0 && await mine(page).count() === 2)
    await answered(page, 'Said 2.')
  },
}
