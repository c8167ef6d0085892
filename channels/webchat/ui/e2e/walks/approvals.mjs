import { gate } from '../model.mjs'
import { answered, answers, composer, send } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const main = page => page.getByRole('main')
const question = page => page.getByRole('article', { name: 'Approval: exec' })

// ready waits until the sandbox has been tried: before that there is no exec.
const ready = w => until('the sandbox to be tried', async () => /sandbox self-test passed/.test(w.log))

// commands makes a model that runs one command and says what came of it.
const commands = command => async (ask, say) => {
  if (ask.round === 0) say.call('exec', { command })
  else say(`It says: ${JSON.stringify(ask.body.messages.findLast(m => m.role === 'tool').content)}`)
}

export default {
  async 'a command is asked about and allowed once'(w) {
    w.model.script = commands('echo hello\u202e from inside')
    await w.start()
    const page = await w.signedIn()
    await ready(w)
    await send(page, 'run it')
    await question(page).waitFor()
    const text = await question(page).innerText()
    check(text.includes('echo hello') && /202e/i.test(text) && !text.includes('\u202e'), `the question shows ${text}`)
    same(await question(page).getByRole('button', { name: 'Allow this in this session' }).count(), 0, 'ways to allow every command')
    check(/^\(1\)/.test(await page.title()), 'the title counts it')
    await composer(page).fill('a draft that stays')
    await question(page).getByRole('button', { name: 'Allow once' }).click()
    const answer = await answered(page, 'It says')
    check((await answer.innerText()).includes('hello'), 'the command ran')
    await question(page).waitFor({ state: 'detached' })
    await page.getByRole('note').getByText('You allowed this command.').waitFor()
    same(await composer(page).inputValue(), 'a draft that stays', 'the draft')
    await page.getByRole('button', { name: /^Tool exec/ }).click()
    await main(page).getByText('a person was asked').first().waitFor()
    await main(page).getByText(/network none/).first().waitFor()
    const [done] = (await w.api('GET', '/v1/approvals')).items
    same([done.state, done.via], ['consumed', 'webchat'], 'the record')
  },

  async 'a question is reviewed from another page, and denied'(w) {
    w.model.script = commands('rm -rf .')
    await w.start()
    const page = await w.signedIn()
    await ready(w)
    await send(page, 'clean up')
    await question(page).waitFor()
    await page.goto(`${w.base}/usage`)
    await page.getByRole('button', { name: 'Review' }).click()
    const dialog = page.getByRole('dialog', { name: 'It waits for you' })
    await dialog.getByText('rm -rf .').first().waitFor()
    same(await page.evaluate(() => document.activeElement?.textContent), 'Deny', 'where the focus is')
    await dialog.getByText('Run this dangerous command?').waitFor()
    await dialog.getByRole('list', { name: 'Look twice' }).getByText('removes folders with all that is in them').waitFor()
    same(await dialog.getByRole('button', { name: /session/ }).count(), 0, 'ways to allow a dangerous command again')
    await until('a yes to be taken', () => dialog.getByRole('button', { name: 'Allow once' }).isEnabled())
    await page.keyboard.press('y') // what is dangerous is allowed by no key
    await page.keyboard.press('e')
    await dialog.getByRole('textbox').fill('not the whole folder')
    await page.keyboard.press('Enter')
    await dialog.waitFor({ state: 'detached' })
    await until('the end of the run', async () => (await w.api('GET', '/v1/runs')).items[0]?.state === 'completed')
    check(w.model.bodies.at(-1).messages.some(m => m.role === 'tool' && /not the whole folder/.test(m.content)), 'the model is told why')
    await page.goBack()
    await answered(page, 'It says')
    await page.getByRole('note').getByText('You denied this command: not the whole folder').waitFor()
  },

  async 'T11 a command is allowed in its session, and asks again when that is revoked'(w) {
    const lines = ['cat notes.txt', 'cat notes.txt more.txt', 'cat notes.txt again.txt']
    w.model.script = async (ask, say) => {
      if (ask.round === 0) say.call('exec', { command: lines.shift() })
      else say(`It says: ${JSON.stringify(ask.body.messages.findLast(m => m.role === 'tool').content)}`)
    }
    await w.start()
    const page = await w.signedIn()
    await ready(w)
    await send(page, 'one')
    await question(page).waitFor()
    await page.getByText('waiting for you').first().waitFor() // not running
    const [session] = (await w.api('GET', '/v1/sessions')).items
    same([session.state, session.running], ['waiting', false], 'the session')
    await page.keyboard.press('y') // the composer has the focus: a letter of a message
    check((await question(page).innerText()).includes('cat notes.txt …'), 'what is allowed is shown before')
    await question(page).getByRole('button', { name: 'Deny', exact: true }).focus()
    await until('a yes to be taken', () => question(page).getByRole('button', { name: 'Allow once' }).isEnabled())
    await page.keyboard.press('s')
    await question(page).waitFor({ state: 'detached' })
    await answered(page, 'It says')
    await page.getByRole('note').getByText('You allowed cat notes.txt … in this session.').waitFor()
    await composer(page).fill('')
    await send(page, 'two')
    await until('the second to run unasked', async () => (await w.api('GET', '/v1/runs')).items.filter(r => r.state === 'completed').length === 2)
    same((await w.api('GET', '/v1/approvals')).items.length, 1, 'questions')
    await page.goto(`${w.base}/needs`)
    await main(page).getByText('cat notes.txt …').waitFor()
    await main(page).getByRole('button', { name: /^Revoke/ }).click()
    await main(page).getByText('cat notes.txt …').waitFor({ state: 'detached' })
    same((await w.api('GET', '/v1/grants')).items, [], 'what is allowed')
    await page.goto(`${w.base}/chat/${encodeURIComponent(session.key)}`)
    await send(page, 'three')
    await question(page).waitFor()
  },

  async 'a question is answered elsewhere'(w) {
    w.model.script = commands('true')
    await w.start()
    const page = await w.signedIn()
    await ready(w)
    await send(page, 'run it')
    await question(page).waitFor()
    await page.goto(`${w.base}/inbox`)
    await question(page).waitFor()
    const [one] = (await w.api('GET', '/v1/approvals?state=pending')).items
    await w.api('POST', `/v1/approvals/${one.id}`, { decision: 'deny' })
    await main(page).getByText('Nothing waits for you').waitFor()
    check(!/^\(/.test(await page.title()), 'the title counts nothing')
  },

  async 'a run is paused and goes on'(w) {
    const first = gate()
    w.model.script = async (ask, say) => {
      if (ask.round === 0) { await Promise.race([first.open, ask.gone]); say.call('list_dir', { path: '.' }) } else say('Done after all.')
    }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'take your time')
    await until('the model to be asked', async () => w.model.asked === 1)
    const [run] = (await w.api('GET', '/v1/runs')).items
    await page.goto(`${w.base}/runs/${run.id}`)
    await main(page).getByRole('button', { name: 'Pause' }).click()
    await until('the pause to be asked for', async () => !(await main(page).getByRole('button', { name: 'Pause' }).isDisabled().catch(() => false)))
    first.pass()
    await main(page).getByText('Paused', { exact: true }).first().waitFor()
    await w.kill()
    await w.run() // a paused run stays so
    await page.reload()
    await main(page).getByText('Paused', { exact: true }).first().waitFor()
    same(w.model.asked, 1, 'calls of the model while it is paused')
    await main(page).getByRole('button', { name: 'Go on' }).click()
    await main(page).getByText('Completed', { exact: true }).first().waitFor()
    await page.goto(`${w.base}/chat/${encodeURIComponent(run.session)}`)
    await answered(page, 'Done after all.')
    await until('answers', async () => await answers(page).filter({ hasText: 'Done after all.' }).count() === 1)
  },
}
