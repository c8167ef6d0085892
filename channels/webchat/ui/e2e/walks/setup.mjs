import { answered, composer, send } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const main = page => page.getByRole('main')
const save = where => where.getByRole('button', { name: 'Save', exact: true })
const form = (page, name) => main(page).getByRole('region', { name })

// kept is what a page's scripts can read of what was typed anywhere.
const kept = page => page.evaluate(() => JSON.stringify([location.href, document.cookie, Object.entries(localStorage), Object.entries(sessionStorage), [...document.querySelectorAll('input, textarea')].map(e => [e.type === 'password' ? '' : e.value, e.getAttribute('value')]), document.body.innerText]))

// stale has a page's sign-in be as old as one that is not fresh: it is a copy that another sign-in asked for.
async function stale(w) {
  const first = await w.signedIn()
  const link = await first.evaluate(async () => (await (await fetch('/v1/sign-in/codes', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })).json()).path)
  const page = await w.page()
  await page.goto(w.base + link)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await composer(page).waitFor()
  return page
}

// local says whether a server of models answers where a gateway without a model looks for one: then it is not without one.
async function local() {
  const asked = await Promise.all([11434, 1234, 8080].map(port => fetch(`http://127.0.0.1:${port}/v1/models`).then(r => r.ok, () => false)))
  return asked.includes(true)
}

export default {
  // From nothing to the first answer, in the page alone: a key that is wrong, one that is right, a model of the list, a message.
  async 'a model is set up in the page'(w) {
    const key = 'sk-walk-right-key'
    w.model.key = key
    if (await local()) return 'not walked: a server of models runs on this machine'
    await w.start({ model: null })
    const page = await w.signedIn()
    await page.getByRole('heading', { name: 'No model is set up yet' }).waitFor()
    await page.getByRole('button', { name: 'Add a model' }).click()
    await main(page).getByRole('radio', { name: 'OpenAI', exact: true }).check()
    await main(page).getByText('More', { exact: true }).click()
    await main(page).getByRole('textbox', { name: 'Address' }).fill(w.model.url)
    const field = main(page).getByLabel('Key', { exact: true })
    same(await field.evaluate(e => [e.type, e.autocomplete]), ['password', 'off'], 'the field of the key')
    await field.fill('sk-walk-wrong-key')
    const test = main(page).getByRole('button', { name: /^Test/ })
    await test.click()
    await main(page).getByRole('alert').filter({ hasText: /key/i }).waitFor()
    await field.fill(key)
    await test.click()
    await main(page).getByText('offers 3 models').waitFor()
    const model = main(page).getByRole('combobox', { name: 'Model' })
    await model.fill('test')
    await model.press('ArrowDown')
    await model.press('Enter')
    same(await model.inputValue(), 'test-model', 'the model that is chosen')
    await save(main(page)).click()
    await main(page).getByText(/is set up and answers here/).waitFor()
    await until('the composer to have the focus', () => composer(page).evaluate(e => e === document.activeElement))
    await page.evaluate(() => { window.same = true })
    await send(page, 'hello')
    await answered(page, 'You said: hello')
    check(await page.evaluate(() => window.same), 'the page was loaded again')
    check(!(await kept(page)).includes('sk-walk'), 'a key is kept in the page')
    const file = await w.file()
    check(!file.includes('sk-walk') && file.includes('${file:'), `the configuration: ${file}`)
    await page.goto(`${w.base}/agents`)
    const card = main(page).getByRole('article', { name: 'Model openai' })
    await card.getByRole('button', { name: 'Change' }).click()
    await card.getByLabel('Address').fill(`${w.model.url.replace('/v1', '')}/elsewhere`) // a key that is kept goes nowhere else
    await save(card).click()
    await card.getByRole('alert').getByText('is kept for another address').waitFor()
    await card.getByLabel('Address').fill(w.model.url)
    await card.getByLabel('Key').fill('sk-walk-wrong-key') // what answered and does so no more is undone
    await save(card).click()
    await card.getByRole('alert').getByText('The change is undone').waitFor()
    await card.getByRole('button', { name: 'Cancel' }).click()
    await card.getByRole('button', { name: 'Test' }).click()
    await card.getByText('It answers').waitFor()
    check(!w.log.includes('sk-walk') && !JSON.stringify(await w.api('GET', '/v1/audit')).includes('sk-walk'), 'a key in the log or the audit log')
  },

  // A channel whose token is wrong at first, its test, another token, a change and its end.
  async 'a channel is set up in the page'(w) {
    const nets = { telegram: await w.fake('telegram'), whatsapp: await w.fake('whatsapp') }
    const tg = nets.telegram
    await w.start()
    const page = await w.signedIn()
    await page.route('**/v1/config/change', async route => { // the networks are elsewhere here
      const body = route.request().postDataJSON()
      for (const { value } of body.changes) {
        const { api_url, root_key } = nets[value?.type]?.options ?? {}
        if (value) Object.assign(value, { api_url, root_key })
      }
      await route.continue({ postData: JSON.stringify(body) })
    })
    await page.goto(`${w.base}/channels`)
    await main(page).getByRole('button', { name: 'Add a channel' }).click()
    await page.getByRole('menuitem', { name: 'Telegram' }).click()
    const add = form(page, 'Add Telegram')
    await add.getByRole('listitem').first().waitFor() // what to do
    await add.getByText('More', { exact: true }).click()
    await add.getByRole('textbox', { name: 'Its name here' }).fill('tg')
    await add.getByLabel(/token/i).fill('1:wrong')
    await save(add).click()
    const card = main(page).getByRole('article', { name: 'Channel tg' })
    await card.getByText('Failed', { exact: true }).waitFor()
    await card.getByRole('button', { name: 'Test' }).click()
    await card.getByRole('status', { name: 'What the test of tg found' }).locator('.bad').first().waitFor()
    await card.getByRole('link', { name: 'Change' }).click()
    const change = form(page, 'Change tg')
    same(await change.getByLabel(/token/i).inputValue(), '', 'the token that is kept')
    await change.getByLabel(/token/i).fill(tg.options.token)
    await save(change).click()
    await card.getByText('Connected', { exact: true }).waitFor()
    check(!(await kept(page)).includes(tg.options.token), 'the token is kept in the page')
    await tg.act('write', 'Let me in')
    await main(page).getByRole('article', { name: 'Request of Ada' }).waitFor()
    await card.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog', { name: 'Remove tg?' }).getByRole('button', { name: 'Remove' }).click()
    await until('the channel to be gone from the file', async () => !(await w.file()).includes('api_url'))
    await page.getByRole('dialog', { name: 'Remove tg?' }).waitFor({ state: 'detached' })
    await card.waitFor({ state: 'detached' })

    await main(page).getByRole('link', { name: 'WhatsApp' }).click() // of those that are offered while there is none
    await save(form(page, 'Add WhatsApp')).click()
    const link = page.getByRole('dialog', { name: 'Link wa to WhatsApp' })
    await link.getByAltText('Code to scan with the phone').waitFor()
    await nets.whatsapp.act('scan', await until('the code', async () => (await w.api('GET', '/v1/channels/wa/login')).qr))
    await link.waitFor({ state: 'detached' })
    await main(page).getByRole('article', { name: 'Channel wa' }).getByText('Connected', { exact: true }).waitFor()
  },

  // A person is added and changed; what is guarded wants a fresh code, which is given in place.
  async 'people and guarded keys'(w) {
    await w.start({ config: '# Kept by hand.\npeople:\n  - id: ada # the first\n    role: owner\n    tz: Europe/Berlin\n' })
    const page = await stale(w)
    await page.goto(`${w.base}/people`)
    const card = id => main(page).getByRole('article', { name: `Person ${id}` })
    await card('ada').getByRole('link', { name: 'Change' }).click()
    const change = form(page, 'Change ada')
    await change.getByRole('combobox', { name: 'Time zone' }).fill('Europe/Paris')
    await save(change).click() // needs no more than a sign-in
    await card('ada').getByText('Europe/Paris').waitFor()
    const file = await w.file()
    check(file.includes('- id: ada # the first') && file.includes('# Kept by hand.') && file.includes('tz: Europe/Paris'), file)

    await main(page).getByRole('link', { name: 'Add a person' }).click()
    const add = form(page, 'Add a person')
    await add.getByRole('textbox', { name: 'Id', exact: true }).fill('ben')
    await add.getByRole('textbox', { name: 'Name', exact: true }).fill('Ben')
    await add.getByRole('combobox', { name: 'Role' }).selectOption('owner')
    await save(add).click()
    const fresh = main(page).getByRole('region', { name: 'Confirm that it is you' })
    await fresh.getByText('people[ben].role').waitFor()
    check(!(await w.file()).includes('ben'), 'an owner was made by a stale sign-in')
    const code = fresh.getByLabel('Link or code')
    await code.fill('B'.repeat(26))
    await code.press('Enter')
    await fresh.getByText('This code is not right').waitFor()
    same(await add.getByRole('textbox', { name: 'Name', exact: true }).inputValue(), 'Ben', 'what was typed')
    const borrowed = await page.evaluate(async () => (await fetch('/v1/sign-in/codes', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{}' })).status)
    same(borrowed, 403, 'a code that a stale sign-in asks for')
    await code.fill(await w.freshLink())
    await fresh.getByRole('button', { name: 'Confirm and go on' }).click()
    await card('ben').getByText('owner', { exact: true }).waitFor()
    check(!(await kept(page)).includes('#code='), 'the code is kept')
    await card('ben').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog', { name: 'Remove Ben?' }).getByRole('button', { name: 'Remove' }).click()
    await until('Ben to be gone from the file', async () => !(await w.file()).includes('ben'))
    await page.goto(await w.freshLink()) // where one is signed in it does the same
    await page.getByText('You are freshly signed in').waitFor()
  },

  // The editor: a mistake by its line, a mend, somebody else's change meanwhile, a secret that stays.
  async 'the file in the editor'(w) {
    await w.start({ config: '# Kept by hand.\npeople:\n  - {id: ada, role: owner, tz: Europe/Berlin}\n', model: ', api_key: sk-walk-kept' })
    const page = await w.signedIn()
    await page.goto(`${w.base}/config`)
    const text = main(page).getByRole('textbox', { name: 'The configuration file' })
    const before = await until('the text', async () => (await text.inputValue()) || undefined)
    check(before.includes('# Kept by hand.') && !before.includes('sk-walk-kept'), before)
    await text.fill(before.replace('people:', 'peple:'))
    const line = before.split('\n').indexOf('people:') + 1
    const problem = main(page).getByRole('button', { name: `Line ${line}`, exact: true })
    await problem.waitFor()
    await problem.click()
    same(await text.evaluate(e => e.value.slice(e.selectionStart, e.selectionEnd)), 'peple:', 'what the line leads to')
    await save(main(page)).click()
    await main(page).getByRole('alert').getByText('stays as it was').waitFor()
    await problem.waitFor()
    check((await w.file()).includes('people:'), 'a file that does not load was written')

    await text.fill(before.replace('Europe/Berlin', 'Europe/Paris'))
    await main(page).getByText('people[ada].tz').waitFor() // what would change
    await w.writeFile((await w.file()).replace('# Kept by hand.', '# Kept by Ben.'))
    await text.press('Control+s')
    const conflict = main(page).getByRole('region', { name: 'The file was changed meanwhile' })
    await conflict.getByText('# Kept by Ben.').waitFor()
    await conflict.getByText('Europe/Paris').waitFor()
    await conflict.getByRole('button', { name: 'Save mine over it' }).click()
    await main(page).getByText('Saved and in force.').waitFor()
    const file = await w.file()
    check(file.includes('Europe/Paris') && file.includes('# Kept by hand.') && file.includes('sk-walk-kept'), file)
    await until('the change to be in force', async () => (await w.api('GET', '/v1/people/ada')).tz === 'Europe/Paris')
    await main(page).getByRole('link', { name: 'In force' }).click()
    await main(page).getByRole('searchbox').fill('Europe/Paris')
    await main(page).locator('.hit').first().waitFor()
  },
}
