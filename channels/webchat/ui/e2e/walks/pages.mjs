import { gate } from '../model.mjs'
import { answered, answers, send } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const main = page => page.getByRole('main')
const rows = page => main(page).locator('tbody tr')

// goTo opens an address of the page as somebody does who kept it.
const goTo = (w, page, where) => page.goto(w.base + where)

export default {
  async 'runs, a run, and its end'(w) {
    const half = gate()
    w.model.script = async (ask, say) => {
      if (/look/.test(ask.text) && ask.round === 0) say.call('list_dir', { path: '.' })
      else if (/slow/.test(ask.text)) { say('It goes on and'); await Promise.race([half.open, ask.gone]) } else say('Here it is.')
    }
    await w.start()
    const page = await w.signedIn()
    await send(page, 'look around')
    await answered(page, 'Here it is.')
    await goTo(w, page, '/runs')
    await rows(page).getByRole('link', { name: 'look around' }).first().click()
    await page.waitForURL(/\/runs\/\w+/)
    await page.reload() // an address of its own
    await main(page).getByText('list_dir').first().click()
    await main(page).getByRole('region', { name: 'Arguments' }).waitFor()
    await page.getByRole('tab', { name: 'Timeline' }).press('ArrowRight')
    await main(page).getByText('May speak').waitFor()
    await page.getByRole('tab', { name: 'Why' }).press('ArrowRight')
    await page.getByRole('list', { name: 'Log of the run' }).getByText('look around').waitFor()

    const slow = await w.api('POST', '/v1/messages', { text: 'slow one', session: 'other' })
    await goTo(w, page, `/runs/${slow.input_id}`)
    await main(page).getByText('Running', { exact: true }).waitFor()
    await main(page).getByRole('button', { name: 'Stop' }).click()
    await main(page).getByText('Stopped', { exact: true }).waitFor()

    await goTo(w, page, '/runs?state=user_stopped')
    await rows(page).getByText('slow one').first().waitFor()
    await until('runs in this state', async () => await rows(page).count() === 1)
    await main(page).getByLabel('State').selectOption('failed')
    await page.waitForURL(/state=failed/)
    await main(page).getByText('No run fits').waitFor()
    await main(page).getByRole('button', { name: 'Show all runs' }).click()
    await until('both runs', async () => await rows(page).count() === 2)
  },

  async 'usage, log and configuration'(w) {
    await w.start({ config: 'agents: [{id: assistant, name: Assistant}, {id: other, name: Other}]\nroutes: [{channel: webchat, peer: "7", agent: other}]\n'.replace('{id: assistant,', '{id: assistant, default: true,') })
    const page = await w.signedIn()
    await send(page, 'hello')
    await answered(page, 'You said: hello')
    await goTo(w, page, '/usage?days=7')
    await main(page).locator('.chart canvas').waitFor()
    await main(page).getByRole('link', { name: 'By agent' }).click()
    await rows(page).getByRole('link', { name: 'Assistant' }).waitFor()
    await until('agents that ran', async () => await rows(page).count() === 1)

    await goTo(w, page, '/agents')
    await rows(page).getByText('fallback', { exact: true }).waitFor() // and not an assignment
    await main(page).getByText('As the fallback it answers').waitFor()

    await goTo(w, page, '/logs?level=info')
    await main(page).getByText('live', { exact: true }).waitFor()
    await w.api('POST', '/v1/config/reload', {})
    await goTo(w, page, '/config?view=force')
    await main(page).getByRole('searchbox').fill('test-model')
    await main(page).locator('.hit').first().waitFor()
    const shown = await main(page).innerText()
    check(!shown.includes(w.token), 'the token is shown')
    await main(page).getByRole('searchbox').fill('no such key')
    await main(page).getByText('Nothing in the configuration').waitFor()

    await goTo(w, page, '/inbox')
    await main(page).getByText('Nothing waits for you').waitFor()
    await goTo(w, page, '/sessions?q=hello')
    await rows(page).getByRole('link', { name: 'hello' }).first().click()
    await answers(page).first().waitFor()
  },
}
