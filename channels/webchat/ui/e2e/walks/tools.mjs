import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { answered, answers, send } from '../page.mjs'
import { check, same, until } from '../world.mjs'

const main = page => page.getByRole('main')
const step = (page, name) => page.getByRole('button', { name: new RegExp(`^Tool ${name}`) })
const part = (page, name) => main(page).getByRole('region', { name, exact: true })
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const commands = "agents: [{id: assistant, name: Assistant, default: true, models: [main], tools: {exec: allow, deny: [resolve_path]}}]"

// rounds makes a model that calls these tools, a round after the other, and then says that it is done.
const rounds = list => async (ask, say) => {
  const calls = list[ask.round]
  if (calls) for (const [name, args] of calls) say.call(name, args)
  else say('All of it is done.')
}

// ready waits until the sandbox has been tried: before that there is no exec.
const ready = w => until('the sandbox to be tried', async () => /sandbox self-test passed|command execution disabled/.test(w.log))

export default {
  async 'files are written, replaced, changed and read'(w) {
    const first = '# Plan\n\n1. Buy milk\n2. Call Ada\n'
    w.model.script = rounds([
      [['write_file', { path: 'notes/plan.md', content: first }]],
      [['write_file', { path: 'notes/plan.md', content: `${first}3. Sleep\n` }]],
      [['edit_file', { path: 'notes/plan.md', old_text: '1. Buy milk\n2. Call Ada\n', new_text: '1. Buy milk and bread\n2. Call Ada\n2b. \u202ewrite\n' }]],
      [['read_file', { path: 'notes/plan.md' }], ['list_dir', { path: 'notes' }]],
      [['read_file', { path: 'notes/plan.md', lines: 3 }], ['read_file', { path: 'missing.txt' }], ['resolve_path', { kind: 'docs', filename: 'a.md' }]],
    ])
    await w.start({ config: commands })
    const page = await w.signedIn()
    await send(page, 'Make a plan')
    await answered(page, 'All of it is done.')
    const folded = page.getByRole('button', { name: /^8 steps/ })
    check(/2 refused/.test(await folded.innerText()) && /1 failed/.test(await folded.innerText()), `the fold says ${await folded.innerText()}`)
    await folded.click()
    await step(page, 'write_file').nth(1).waitFor()

    check(/new, 32 B/.test(await step(page, 'write_file').first().innerText()), 'a new file is not said to be new')
    check(/replaced, 41 B/.test(await step(page, 'write_file').last().innerText()), 'a replaced file is not said to be replaced')
    await step(page, 'write_file').last().click()
    check((await part(page, 'Content').innerText()).includes('2. Call Ada\n3. Sleep'), 'what was written is shown in lines')
    await step(page, 'write_file').last().click()

    await step(page, 'edit_file').click()
    const lines = part(page, 'Change').locator('.diff-line')
    same(await lines.evaluateAll(list => list.map(l => l.textContent.replace(/\s+$/, ''))), ['−removed: 1. Buy milk', '+added: 1. Buy milk and bread', ' 2. Call Ada', '+added: 2b. U+202Ewrite'], 'the diff')
    check(/\+2 −1/.test(await step(page, 'edit_file').innerText()), 'the sums of the diff')
    await step(page, 'edit_file').click()

    await step(page, 'read_file notes').first().click()
    await part(page, 'Result').getByText('Buy milk and bread').waitFor()
    await step(page, 'read_file notes').first().click()
    await step(page, 'list_dir').click()
    await part(page, 'Result').getByText('plan.md').waitFor()
    await step(page, 'list_dir').click()

    await step(page, 'read_file notes').last().click() // an argument that there is not
    await part(page, 'Refused').getByText('there is no argument "lines"').waitFor()
    await main(page).getByText('its arguments cannot be meant').waitFor()
    await main(page).getByText('refused: it did not run').waitFor()
    await step(page, 'read_file notes').last().click()
    await step(page, 'read_file missing').click()
    await part(page, 'Error').getByText('missing.txt').waitFor()
    await step(page, 'read_file missing').click()
    await step(page, 'resolve_path').click() // policy has the last word
    await main(page).getByText('denied', { exact: true }).first().waitFor()
    await main(page).getByText('layer agent, rule deny:resolve_path').waitFor()
    await main(page).getByText('2 layers judged').click()
    await main(page).getByText('built-in', { exact: true }).waitFor()

    await page.getByRole('button', { name: 'Show the run' }).last().click()
    await page.getByRole('link', { name: 'Open the run' }).click()
    const line = main(page).getByRole('list', { name: 'Timeline' })
    await line.getByText('edit_file', { exact: false }).first().click()
    await part(page, 'Change').waitFor()
    same(await line.getByText('refused: it did not run', { exact: true }).count() >= 2, true, 'refusals in the timeline')
  },

  // T03: what an agent sends is a stranger's file: it is saved, or drawn where nothing in it can run.
  async 'a sent file arrives, and none of it runs here'(w) {
    const evil = '<script>parent.pwned = 1; window.pwned = 1</script>'
    w.model.script = rounds([
      [['write_file', { path: 'report.txt', content: 'remember the milk' }], ['write_file', { path: 'page.html', content: `<!doctype html>${evil}` }],
        ['write_file', { path: 'pic.svg', content: `<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned = 2">${evil}</svg>` }],
        ['write_file', { path: 'photo.png.html', content: `<html>${evil}</html>` }], ['write_file', { path: 'a "q" <b>&.txt', content: 'x' }]],
      [['exec', { command: `printf %s ${png} | base64 -d > dot.png` }]],
      ['report.txt', 'page.html', 'pic.svg', 'photo.png.html', 'a "q" <b>&.txt', 'dot.png'].map(path => ['send_file', { path }]),
    ])
    await w.start({ config: commands })
    const page = await w.signedIn()
    await ready(w)
    await send(page, 'Send me everything')
    await answered(page, 'All of it is done.')
    const sent = answers(page).locator('.files a')
    await until('all files', async () => await sent.count() === 6)
    const picture = answers(page).getByRole('img')
    await until('pictures', async () => await picture.count() === 1)
    await until('the picture is drawn', () => picture.evaluate(i => i.complete && i.naturalWidth > 0))
    for (const link of await answers(page).getByRole('link', { name: /save the file/ }).all()) {
      const saved = page.waitForEvent('download')
      await link.click()
      const name = (await saved).suggestedFilename()
      check(!/[<>"/\\]/.test(name) && /\.(txt|html|svg)$/.test(name), `a file is saved as ${name}`)
    }
    for (const href of await sent.evaluateAll(list => list.map(a => a.href))) { // whoever opens the address itself
      const asked = await page.evaluate(async url => { const r = await fetch(url); return { type: r.headers.get('content-type'), how: r.headers.get('content-disposition'), csp: r.headers.get('content-security-policy'), sniff: r.headers.get('x-content-type-options') } }, href)
      check(/sandbox/.test(asked.csp) && asked.sniff === 'nosniff' && (/^(image\/png|text\/plain)/.test(asked.type) || /^attachment/.test(asked.how)), `${href}: ${JSON.stringify(asked)}`)
    }
    same(await page.evaluate(() => window.pwned), undefined, 'window.pwned')
    await page.reload()
    await answered(page, 'All of it is done.')
    await until('all files after a reload', async () => await sent.count() === 6)
    same(await page.evaluate(() => window.pwned), undefined, 'window.pwned after a reload')
  },

  async 'commands: long output, an exit code, and all of it'(w) {
    const slow = 'seq 1 60; until [ -e go ]; do sleep 0.05; done; echo further; until [ -e end ]; do sleep 0.05; done'
    w.model.script = rounds([[['exec', { command: slow }]], [['exec', { command: 'seq 1 20000; echo "the end" >&2' }]], [['exec', { command: 'echo oops; exit 3' }]]])
    await w.start({ config: commands })
    const page = await w.signedIn()
    await ready(w)
    const work = path.join(w.dir, 'data', 'agents', 'assistant', 'work', 'owner-local')
    await send(page, 'Count')
    const live = page.getByRole('group', { name: 'Output so far' }) // of the first command, which waits for a file
    await live.getByText('\n60').waitFor()
    await page.getByText('20 lines above').waitFor()
    same(await live.getAttribute('aria-live'), 'off', 'whether it is read aloud')
    const toEnd = () => live.evaluate(b => Math.round(b.scrollHeight - b.scrollTop - b.clientHeight))
    await until('it to stand at its end', async () => await toEnd() < 8)
    await live.evaluate(b => new Promise(ok => { b.addEventListener('scroll', () => { requestAnimationFrame(ok) }, { once: true }); b.scrollTop = 0 })) // who reads above stays there
    await writeFile(path.join(work, 'go'), '')
    await live.getByText('further').waitFor()
    same(await live.evaluate(b => b.scrollTop), 0, 'where the reader stands')
    await page.reload() // who comes late sees it too
    await live.getByText('further').waitFor()
    await until('it to stand at its end', async () => await toEnd() < 8)
    await writeFile(path.join(work, 'end'), '')
    await answered(page, 'All of it is done.')
    same(await live.count(), 0, 'what is live behind the end')
    await page.getByRole('button', { name: /^3 steps/ }).click()
    check(/exit code 3/.test(await step(page, 'exec echo').innerText()), 'an exit code is not shown')
    await step(page, 'exec seq 1 20000').click()
    await part(page, 'Command').getByText('seq 1 20000').waitFor()
    await main(page).getByText(/network none/).first().waitFor()
    const output = part(page, 'Output')
    check(!(await output.innerText()).includes('the end'), 'the end of a long output is shown at once')
    await output.getByRole('button', { name: /^Show all/ }).click()
    await output.getByText('the end').waitFor()
    await output.getByText('the middle is cut out').waitFor()
    check(!(await output.innerText()).includes('\n10000\n'), 'the middle is there after all')
    const opened = page.context().waitForEvent('page')
    await output.getByRole('link', { name: 'All of the output' }).click()
    const whole = await opened
    await until('the whole output', async () => (await whole.locator('body').innerText().catch(() => '')).includes('\n10000\n'))
    check((await whole.locator('body').innerText()).includes('the end'), 'the whole output has no end')
    const headers = await page.evaluate(async url => { const r = await fetch(url); return [r.headers.get('content-type'), r.headers.get('content-security-policy')] }, whole.url())
    check(/^text\/plain/.test(headers[0]) && /sandbox/.test(headers[1]), `the output comes as ${headers}`)
    await whole.close()
    await page.setViewportSize({ width: 360, height: 740 })
    await until('nothing is too wide', () => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth))
  },

  async 'the audit log is read'(w) {
    w.model.script = rounds([[['exec', { command: 'echo \u202eone' }]]])
    await w.start()
    const page = await w.signedIn()
    await ready(w)
    await send(page, 'run it')
    await page.getByRole('button', { name: 'Allow once' }).click()
    await answered(page, 'All of it is done.')
    await page.getByRole('button', { name: 'Manage' }).click()
    await page.getByRole('link', { name: 'Audit', exact: true }).click()
    await main(page).getByText(/Verified up to row \d+/).waitFor()
    const log = main(page).getByRole('list', { name: 'Audit log, newest first' })
    const rows = log.getByRole('listitem')
    await log.getByText('A command ended').waitFor()
    const all = await rows.count()
    check(all >= 6, `${all} rows`)
    const said = await rows.allInnerTexts()
    const at = text => said.findIndex(t => t.includes(text))
    check(at('A command ended') < at('A command began') && at('A command began') < at('Allowed') && at('Allowed') < at('A question before exec'), `the order is ${said}`)
    await log.getByText('U+202E').first().waitFor()
    await log.getByRole('button', { name: /A command began/ }).click()
    await log.getByRole('term').filter({ hasText: 'Row’s hash' }).waitFor()
    await main(page).getByLabel('Show').selectOption('signin')
    await page.waitForURL(/kind=signin/)
    await log.getByText('A browser signed in').waitFor()
    same(await log.getByText('A command began').count(), 0, 'commands among the ways in')
    await page.reload()
    await log.getByText('A browser signed in').waitFor()
    await main(page).getByLabel('Show').selectOption('egress')
    await main(page).getByText('Nothing of this kind happened').waitFor()
    await main(page).getByRole('button', { name: 'Show everything' }).click()
    await until('all rows again', async () => await rows.count() >= all)
  },
}
