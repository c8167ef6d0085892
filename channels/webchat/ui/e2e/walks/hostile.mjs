import { answered, answers, composer, openAll, send } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const main = page => page.getByRole('main')
const questions = page => page.getByRole('article', { name: 'Approval: exec' })
const dialog = page => page.getByRole('dialog', { name: 'It waits for you' })
const allow = { name: 'Allow once' }, deny = { name: 'Deny', exact: true }

// ready waits until the sandbox has been tried: before that there is no exec.
const ready = w => until('the sandbox to be tried', async () => /sandbox self-test passed/.test(w.log))

// commands makes a model that runs what it is asked to, once.
const commands = async (ask, say) => { ask.round === 0 ? say.call('exec', { command: ask.text }) : say('Done.') }

const pending = async w => (await w.api('GET', '/v1/approvals?state=pending&limit=500')).items

// asking has a question wait, in a session of its own.
async function asking(w, command, session) {
  const before = (await pending(w)).length
  await w.api('POST', '/v1/messages', { text: command, session })
  return until('the question', async () => { const now = await pending(w); return now.length > before && now[0] })
}

export default {
  async 'two hundred questions'(w) {
    const many = 200
    w.model.script = commands
    await w.start()
    const page = await w.signedIn()
    await ready(w)
    const odd = ['echo \u202eevil\u202c', '<img src=x onerror="window.pwned=1">', `echo ${'x'.repeat(60_000)}`, '[click](javascript:window.pwned=2)', 'printf "\u001b[2J\u0007"', '# heading\n\n**bold** <script>window.pwned=3</script>']
    await Promise.all(Array.from({ length: many }, (_, i) => w.api('POST', '/v1/messages', { text: odd[i % odd.length], session: `s${i}` })))
    await until('all questions', async () => (await pending(w)).length === many)
    await page.getByText('200 questions wait for you').waitFor()
    await until('the title counts them', async () => (await page.title()).startsWith('(200)'))
    const began = Date.now()
    await page.goto(`${w.base}/inbox`)
    await questions(page).first().waitFor()
    const took = Date.now() - began
    await until('questions that are drawn at once', async () => await questions(page).count() === 20)
    await main(page).getByRole('button', { name: 'Show more of 200' }).click()
    await until('questions after more are asked for', async () => await questions(page).count() === 40)
    const shown = await main(page).innerText()
    check(!/[\u202a-\u202e\u0007\u001b]/.test(shown) && /202E/.test(shown), 'what is invisible is hidden')
    same(await main(page).locator('img, script, a[href^="javascript"]').count(), 0, 'markup of a command')

    // What is over stays where it stood: what is below does not come under the pointer.
    const second = questions(page).nth(1)
    const top = () => second.evaluate(e => e.offsetTop)
    const place = await top()
    await questions(page).first().getByRole('button', deny).click()
    await questions(page).first().getByText('This question is over.').waitFor()
    await until('buttons of a question that is over, questions', async () => await questions(page).first().getByRole('button').count() === 0 && await questions(page).count() === 40)
    check(await top() > place - 60, `the next question jumped from ${place} to ${await top()}`)
    await second.getByRole('button', deny).click()
    await until('two decided', async () => (await pending(w)).length === many - 2)

    // The dialog stays with its question, also when that is decided elsewhere.
    await page.goto(`${w.base}/usage`)
    await page.getByRole('button', { name: 'Review' }).click()
    await dialog(page).getByRole('button', deny).waitFor()
    const oldest = (await pending(w)).at(-1)
    await w.api('POST', `/v1/approvals/${oldest.id}`, { decision: 'deny' })
    await dialog(page).getByText('It was denied').waitFor()
    same(await dialog(page).getByRole('button', allow).count(), 0, 'ways to allow another question in its place')
    await dialog(page).getByRole('button', { name: 'Next question' }).click()
    await dialog(page).getByRole('button', deny).click()
    await until('it is decided', async () => (await pending(w)).length === many - 4)
    same(await page.evaluate(() => window.pwned), undefined, 'window.pwned')
    await w.api('POST', '/v1/stop', {})
    return `${many} questions are shown after ${took} ms`
  },

  async 'a question runs out while it is looked at'(w) {
    w.model.script = commands
    await w.start({ config: 'approvals: {expire: 20s}' })
    const page = await w.signedIn()
    await ready(w)
    await page.goto(`${w.base}/usage`)
    await asking(w, 'touch here', 'late')
    await page.getByRole('button', { name: 'Review' }).click()
    await dialog(page).getByText(/expires in \d+ s/).waitFor()
    await dialog(page).getByText(/Nobody answered in time/).waitFor()
    same(await dialog(page).getByRole('button', allow).and(page.locator(':enabled')).count(), 0, 'ways to allow what has run out')
    await until('the gateway says so, too', async () => (await pending(w)).length === 0)
    await dialog(page).getByRole('button', { name: 'Close' }).click()
    await dialog(page).waitFor({ state: 'detached' })
    same((await w.api('GET', '/v1/approvals')).items[0].state, 'expired', 'the record')
  },

  async 'two tabs decide the same question'(w) {
    w.model.script = commands
    await w.start()
    const one = await w.signedIn()
    await ready(w)
    await send(one, 'echo once >> counted; cat counted')
    await questions(one).waitFor()
    const two = await w.page({ context: one.context() })
    await two.goto(one.url())
    for (const page of [one, two]) await questions(page).getByRole('button', allow).and(page.locator(':enabled')).waitFor()
    // Both at one moment by the clock. Where one is late all the same, the question is over there.
    await Promise.all([one, two].map(p => p.evaluate(at => new Promise(ok => {
      setTimeout(() => { ok([...document.querySelectorAll('.ask button')].find(b => b.textContent === 'Allow once')?.click()) }, at - Date.now())
    }), Date.now() + 500)))
    for (const page of [one, two]) {
      await questions(page).waitFor({ state: 'detached' })
      await answered(page, 'Done.')
    }
    const told = await Promise.all([one, two].map(p => p.locator('.toast').allInnerTexts()))
    const tools = w.model.bodies.at(-1).messages.filter(m => m.role === 'tool')
    same(tools.map(t => (t.content.match(/^once$/gm) ?? []).length), [1], 'times that the command ran')
    const list = (await w.api('GET', '/v1/approvals')).items
    same(list.map(a => a.state), ['consumed'], 'the record')
    return `the tabs were told ${JSON.stringify(told)}`
  },

  async 'the gateway is killed while a question is looked at'(w) {
    w.model.script = commands
    await w.start()
    const page = await w.signedIn()
    await ready(w)
    await asking(w, 'echo kept', 'other')
    await page.goto(`${w.base}/agents`)
    await page.getByRole('heading', { name: 'Agents' }).waitFor() // all of the page has come
    await page.getByRole('button', { name: 'Review' }).click()
    await dialog(page).getByText('echo kept').first().waitFor()
    await w.kill()
    await dialog(page).getByRole('button', deny).click()
    await dialog(page).getByText('The gateway does not answer').waitFor()
    await dialog(page).getByText('echo kept').first().waitFor() // it stays
    await w.run()
    await until('the question again', async () => (await pending(w)).length === 1)
    await dialog(page).getByRole('button', deny).and(page.locator(':enabled')).click()
    await dialog(page).waitFor({ state: 'detached' })
    await until('it is decided', async () => (await pending(w)).length === 0)
  },

  // What a model calls, and how, is a stranger's text wherever it stands.
  async 'hostile tool calls and a megabyte in one line'(w) {
    const name = '<img src=x onerror="window.pwned=1">', turned = '\u202egnp.exe\u202c\u0007'
    const long = 'w'.repeat(1 << 20)
    w.model.script = async (ask, say) => {
      if (ask.text === 'tools' && ask.round === 0) {
        say.call('list_dir', { path: turned, [name]: name, '\u202ekey': { deep: [name] } })
        say.call('write_file', { path: 'a.txt', content: `${name}\n[x](javascript:window.pwned=2)\n${'y'.repeat(500_000)}` })
        say.call('edit_file', { path: 'a.txt', old_text: name, new_text: `${turned}\n<script>window.pwned=3</script>` })
        say.call(name, { path: name })
      } else if (ask.text === 'long') say(`${long} The end of it.`)
      else say('Looked.')
    }
    await w.start({ model: ', context_window: 1000000, max_output_tokens: 100000' }) // or the megabyte is cut
    const page = await w.signedIn()
    await send(page, 'tools')
    await answered(page, 'Looked.')
    await page.getByRole('button', { name: /^4 steps/ }).click()
    await openAll(page.getByRole('button', { name: /^Tool / }), 4)
    await until('what is invisible is shown', async () => /U\+202E/.test(await main(page).innerText()))
    check(!/[\u202a-\u202e\u0007]/.test(await main(page).innerText()), 'what is invisible is hidden')
    same(await main(page).locator('img, script, iframe, a[href^="javascript"]').count(), 0, 'markup of a call')
    const show = main(page).getByRole('button', { name: /^Show more of 500,/ })
    await show.click()
    const { items: [run] } = await w.api('GET', '/v1/runs')
    await page.goto(`${w.base}/runs/${run.id}`)
    const moments = main(page).locator('.moments > li > details > summary')
    await moments.filter({ hasText: 'edit_file' }).waitFor() // the timeline has come, all of it
    await openAll(moments, await moments.count())
    await main(page).getByRole('region', { name: 'Change' }).waitFor()
    check(!/[\u202a-\u202e\u0007]/.test(await main(page).innerText()), 'what is invisible is hidden on the page of the run')
    same(await main(page).locator('img, script, iframe, a[href^="javascript"]').count(), 0, 'markup on the page of the run')

    await page.goBack()
    await send(page, 'long')
    await answered(page, 'The end of it.')
    const slowest = await page.evaluate(() => new Promise(ok => { // frames while somebody writes
      let last = performance.now(), most = 0, n = 0
      const next = at => { most = Math.max(most, at - last); last = at; if (++n < 30) requestAnimationFrame(next); else ok(Math.round(most)) }
      requestAnimationFrame(next)
    }))
    await composer(page).fill('and on')
    await send(page, 'and on')
    await answers(page).getByText('Looked.').nth(1).waitFor()
    same(await page.evaluate(() => window.pwned), undefined, 'window.pwned')
    return `the slowest frame beside a megabyte: ${slowest} ms`
  },
}
