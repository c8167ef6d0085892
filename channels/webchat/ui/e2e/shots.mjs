// node shots.mjs [NAME…]: the pictures that somebody has to look at, each at 360 and 1440 px, light and dark, into
// PARLEY_SHOTS; and one sheet of the four for each scene. PARLEY_SHOOT names some of them too, parted by commas; 1 is all.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { open } from './chromium.mjs'
import { gate } from './model.mjs'
import { answered, answers, composer } from './page.mjs'
import { Telegram } from './telegram.mjs'
import { until, World } from './world.mjs'

const dir = process.env.PARLEY_SHOTS
const looks = [360, 1440].flatMap(width => ['light', 'dark'].map(colorScheme => ({ width, height: width === 360 ? 740 : 900, colorScheme })))

const long = `# How a commit reaches the disk

A write is **durable** only when \`fsync\` has returned. Until then it is in the page cache, and a power cut takes it.

1. The program writes to the file.
2. The kernel keeps the pages and says that all is well.
3. \`fsync\` waits until the drive has them.

\`\`\`go
// Put writes data so that it survives a power cut: a new file beside the old one, synced, renamed over it.
func Put(dir *os.Root, name string, data []byte) error {
	f, err := dir.Create(name + ".new")
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close(), dir.Rename(name+".new", name))
}
\`\`\`

| mode | commits a second | lost in a power cut | when to use it |
| --- | ---: | --- | --- |
| \`FULL\` | 1,800 | nothing | **always**, unless you can do it all again |
| \`NORMAL\` | 9,400 | the last commits | caches |
| \`OFF\` | 21,000 | perhaps the whole file | tests |

> Who does not sync promises what he does not have.

More: [SQLite's own page](https://www.sqlite.org/atomiccommit.html) explains each step.`

const reads = [['list_dir', { path: '.' }], ['read_file', { path: 'docs/plan.md' }], ['list_dir', { path: 'docs' }], ['resolve_path', { kind: 'docs', filename: 'report.md' }], ['read_file', { path: 'requirements/all.md', limit: 40 }]]

// scenes say what there is to see: each gets a world and a page of the size, and returns when it can be taken.
const scenes = {
  async 'first visit'(w, page) {
    await page.goto(w.link)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
  },
  async 'signed out'(w, page) {
    await page.goto(w.base)
    await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  },
  async 'empty session'(w, page) { await enter(w, page) },
  async streaming(w, page) {
    w.model.script = async (ask, say) => {
      say(long.slice(0, 700))
      await ask.gone
    }
    await enter(w, page)
    await send(page, 'How does a commit reach the disk?')
    await answers(page).getByText('func Put').waitFor()
    await composer(page).fill('And what about macOS, where fsync does')
  },
  async 'long answer'(w, page) {
    w.model.script = async (_, say) => { say(long) }
    await enter(w, page)
    await send(page, 'How does a commit reach the disk?')
    await answered(page, 'Who does not sync')
    await answers(page).getByText('120 → 30 tokens').waitFor()
  },
  async 'five tool calls'(w, page) {
    w.model.script = async (ask, say) => {
      if (ask.round === 0) for (const [name, args] of reads) say.call(name, args)
      else say('The work folder is empty, so there is **no plan yet**. Shall I write one into `docs/plan.md`?')
    }
    await enter(w, page)
    await send(page, 'What is the plan?')
    await answered(page, 'no plan yet')
    await page.getByRole('button', { name: /^5 steps/ }).click()
    await page.getByRole('button', { name: /^Tool read_file docs/ }).click()
  },
  async 'live command'(w, page) {
    const command = 'for i in $(seq 101 158); do echo "ok  shop/package$i  0.$i s"; done; printf "FAIL shop/orders  1.2 s\\n     orders_test.go:41: 3 orders, want 4\\n"; printf " 12%%\\r 58%%\\r 97%% of all tests"; sleep 60'
    w.model.script = async (ask, say) => { say.call('exec', { command }) }
    await enter(w, page)
    await until('the sandbox to be tried', async () => /sandbox self-test passed/.test(w.log))
    await send(page, 'Run all tests of the shop, please.')
    await page.getByText('97% of all tests').waitFor()
  },
  async 'run beside the chat'(w, page) {
    await scenes['five tool calls'](w, page)
    await page.getByRole('button', { name: 'Show the run' }).last().click()
    await page.getByRole('region', { name: 'Run' }).waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  },
  async offline(w, page) {
    await enter(w, page)
    await send(page, 'Good morning')
    await answered(page, 'Good morning')
    await w.kill()
    await page.context().setOffline(true)
    await page.getByText('You are offline.').waitFor()
    await send(page, 'I will be late today.')
    await page.getByText('Waits until Parley is back').waitFor()
  },
  async error(w, page) {
    w.model.script = async (_, say) => { say.fail(401, 'Incorrect API key provided: sk-…abcd') }
    await enter(w, page)
    await send(page, 'Good morning')
    await page.getByRole('note').first().waitFor()
  },
  async 'failing model'(w, page) {
    await fails(w, page, (_, say) => { say.fail(500, 'upstream exploded: no healthy backend in pool eu-west-1') }, 'main answers 500')
  },
  async 'model asks to wait'(w, page) {
    await fails(w, page, (_, say) => { say.fail(429, 'Rate limit reached for requests', { 'Retry-After': '40' }) }, 'takes no more requests')
  },
  async 'refused key'(w, page) {
    await fails(w, page, (_, say) => { say.fail(401, 'Incorrect API key provided') }, 'refuses the key')
  },
  async 'model that sends nothing'(w, page) {
    await fails(w, page, ask => ask.gone, 'No answer from')
  },
  async 'another model'(w, page) {
    await scenes['failing model'](w, page)
    await page.getByRole('button', { name: 'Use another model' }).click()
    await page.getByRole('menuitemradio').first().waitFor()
  },
  async 'inbox with a failing model'(w, page) {
    await scenes['refused key'](w, page)
    await page.goto(`${w.base}/needs`)
    await page.getByText('refuses the key').first().waitFor()
  },
  async 'a thousand sessions'(w, page, look) {
    await enter(w, page)
    if (look.width < 720) await page.getByRole('button', { name: 'Open the side bar' }).click()
    await page.getByText('Message 1: a leaking tap?').waitFor()
  },
  async 'ten thousand entries'(w, page) {
    await enter(w, page)
    await page.goto(`${w.base}/chat/${encodeURIComponent('agent:assistant:local:long')}`)
    await answers(page).getByText('Answer 2500 with code').waitFor()
    await page.getByRole('region', { name: /^Conversation/ }).evaluate(b => { b.scrollTop = b.scrollHeight - 3000 })
    await page.getByRole('button', { name: 'Latest' }).waitFor()
  },
  async 'model picker'(w, page) {
    await enter(w, page)
    await send(page, 'Good morning')
    await answered(page, 'Good morning')
    await page.getByRole('button', { name: /^Model:/ }).click()
    await page.getByRole('menuitemradio', { name: /thinker/ }).click()
    await page.getByRole('button', { name: 'Model: thinker' }).click()
    await page.getByRole('menuitemradio', { name: /^High$/ }).click()
    await page.getByRole('button', { name: /^Model: thinker.*high/ }).click()
    await page.getByRole('menuitemradio', { name: /thinker/ }).waitFor()
  },
  async 'new chat with two agents'(w, page) {
    await enter(w, page)
    await page.getByRole('button', { name: 'Agent: Assistant' }).click()
    await page.getByRole('menuitemradio', { name: /Research/ }).waitFor()
  },
  async 'unread on two pages'(w, page, look) {
    w.model.script = async (ask, say) => {
      say(`**You said:** ${ask.text}\n\n| a | b |\n|---|---|\n| 1 | 2 |`)
      if (ask.text === 'Slowly') await ask.gone
    }
    await enter(w, page)
    for (const text of ['How does a commit reach the disk?', 'Rain on Sunday?', 'Names for a cat']) await w.api('POST', '/v1/messages', { text, session: text.slice(0, 4), wait: 60 })
    await w.api('POST', '/v1/messages', { text: 'Slowly', session: 'slow' })
    const other = await w.page()
    await other.goto(await w.freshLink())
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('link', { name: /^Rain on Sunday/ }).click()
    await answered(other, 'Rain on Sunday')
    if (look.width < 720) await page.getByRole('button', { name: 'Open the side bar' }).click()
    await page.getByRole('link', { name: /^Rain on Sunday.*unread/ }).waitFor({ state: 'hidden' })
    await page.getByRole('link', { name: /^Names for a cat.*unread/ }).waitFor()
    await page.getByRole('button', { name: 'Manage' }).click()
  },
  async 'a stranger asks'(w, page) {
    await enter(w, page)
    w.telegram.write(777, 'Ada Lovelace', 'Let me in')
    await page.goto(`${w.base}/inbox`)
    await page.getByText('Ada Lovelace').first().waitFor()
  },
  async 'no model'(w, page) {
    await page.goto(w.link)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'No model is set up yet' }).waitFor()
  },
  async 'no model and a key that is refused'(w, page) {
    w.model.key = 'sk-the-right-one'
    await scenes['no model'](w, page)
    await page.getByRole('button', { name: 'Add a model' }).click()
    await page.getByRole('radio', { name: 'OpenAI', exact: true }).check()
    await page.getByRole('main').getByText('More', { exact: true }).click()
    await page.getByRole('textbox', { name: 'Address' }).fill(w.model.url)
    await page.getByLabel('Key', { exact: true }).fill('sk-a-wrong-one')
    await page.getByRole('button', { name: 'Test' }).click()
    await page.getByRole('alert').waitFor()
  },
  async 'no model and one is chosen'(w, page) {
    await scenes['no model and a key that is refused'](w, page)
    await page.getByLabel('Key', { exact: true }).fill(w.model.key)
    await page.getByRole('button', { name: 'Test' }).click()
    await page.getByText('offers 3 models').waitFor()
    await page.getByRole('combobox', { name: 'Model' }).scrollIntoViewIfNeeded()
  },
  ...Object.fromEntries(['Telegram', 'Slack', 'Discord', 'WhatsApp'].map(title => [`set-up of ${title}`, async (w, page) => {
    await enter(w, page)
    await page.goto(`${w.base}/channels?add=${title.toLowerCase()}`)
    await page.getByRole('region', { name: `Add ${title}` }).waitFor()
  }])),
  async 'set-up of WhatsApp by the code'(w, page) {
    await enter(w, page)
    await page.goto(`${w.base}/channels`)
    await page.getByRole('button', { name: 'Link a phone' }).click()
    await page.getByAltText('Code to scan with the phone').waitFor()
  },
  async people(w, page) {
    await enter(w, page)
    await page.goto(`${w.base}/people`)
    await page.getByRole('article', { name: 'Person ada' }).waitFor()
  },
  async 'a person with a code of the machine'(w, page) {
    await scenes.people(w, page)
    await page.route('**/v1/config/change', route => route.fulfill({ status: 403, contentType: 'application/problem+json', json: { type: 'urn:parley:error:fresh_sign_in', title: 'Forbidden', status: 403, detail: 'This wants a fresh sign-in.', guarded: ['people[ben].role'] } }))
    await page.getByRole('article', { name: 'Person ben' }).getByRole('link', { name: 'Change' }).click()
    await page.getByRole('combobox', { name: 'Role' }).selectOption('owner')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('region', { name: 'Confirm that it is you' }).waitFor()
  },
  async 'the editor with a problem'(w, page) {
    await enter(w, page)
    await page.goto(`${w.base}/config`)
    const text = page.getByRole('textbox', { name: 'The configuration file' })
    await text.waitFor()
    await text.fill((await text.inputValue()).replace('people:', 'peple:'))
    await page.getByRole('button', { name: /^Line \d/ }).first().waitFor()
  },
  ...Object.fromEntries(['sessions', 'agents', 'channels', 'runs', 'usage', 'logs', 'audit', 'config'].map(where => [`page ${where}`, async (w, page) => {
    w.model.script = async (ask, say) => { if (ask.round === 0) for (const [name, args] of reads) say.call(name, args); else say(long) }
    await enter(w, page)
    for (const text of ['How does a commit reach the disk?', 'Rain on Sunday?', 'Names for a cat']) await w.api('POST', '/v1/messages', { text, session: text.slice(0, 4), wait: 60 })
    await page.goto(`${w.base}/${where}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.locator('.skeleton').first().waitFor({ state: 'detached' })
  }])),
}

// fails says something to a model that fails so.
async function fails(w, page, script, said) {
  w.model.script = async (ask, say) => { await script(ask, say) }
  await enter(w, page)
  await send(page, 'Plan the week: rain on Sunday, guests on Tuesday')
  await page.locator('.note.failing').getByText(new RegExp(said, 'i')).first().waitFor()
}

// send uses the button: on a phone Enter is a new line.
async function send(page, text) {
  await composer(page).fill(text)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

async function enter(w, page) {
  await page.goto(w.link)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await composer(page).waitFor()
}

// configs are what scenes need beside a model.
const two = `
  - {name: large, api: offline}
  - {name: thinker, base_url: "http://127.0.0.1:9/v1", model: gpt-5}
agents:
  - {id: assistant, name: Assistant, default: true, model: main, fallbacks: [large], models: [thinker]}
  - {id: research, name: Research, model: large, models: [main]}`
const people = 'people:\n  - id: ada\n    name: Ada Lovelace\n    role: owner\n    tz: Europe/London\n  - {id: ben, name: Ben, role: member, tz: Europe/Berlin}\n'
const others = two.replace('fallbacks: [large], models: [thinker]', 'models: [large, thinker]')
const runs = 'agents: [{id: assistant, name: Assistant, default: true, models: [main], tools: {exec: allow}}]'
const configs = { 'live command': runs, 'model picker': two, 'new chat with two agents': two, 'unread on two pages': two, people, 'a person with a code of the machine': people, 'the editor with a problem': people, 'failing model': others, 'another model': others, 'refused key': others, 'inbox with a failing model': others }
const only = process.argv.length > 2 ? process.argv.slice(2) : (process.env.PARLEY_SHOOT ?? '1') === '1' ? Object.keys(scenes) : process.env.PARLEY_SHOOT.split(',')

const browser = await open()
await mkdir(dir, { recursive: true })
for (const [name, scene] of Object.entries(scenes)) {
  if (!only.includes(name)) continue
  const files = []
  for (const look of looks) {
    const w = new World(browser, name)
    w.telegram = await new Telegram().start()
    const whatsapp = name === 'set-up of WhatsApp by the code' && await w.fake('whatsapp')
    await w.start({
      config: name === 'a stranger asks' || name === 'page channels' ? `channels:\n  - {name: tg, type: telegram, token: "${w.telegram.token}", api_url: "${w.telegram.url}"}`
        : whatsapp ? `channels:\n${whatsapp.channel('wa')}` : configs[name] ?? '',
      ...(name.startsWith('no model') ? { model: null } : {}),
      data: /thousand/.test(name) ? process.env.PARLEY_LONG : undefined,
    })
    const page = await w.page({ ...look, hasTouch: look.width === 360, isMobile: look.width === 360 })
    const file = path.join(dir, `${name.replaceAll(' ', '-')}-${look.width}-${look.colorScheme}.png`)
    await scene(w, page, look).catch(async err => { await page.screenshot({ path: file }); throw err })
    await page.evaluate(() => new Promise(ok => { requestAnimationFrame(() => { requestAnimationFrame(ok) }) }))
    await page.screenshot({ path: file })
    files.push(file)
    await w.stop()
    w.telegram.stop()
  }
  const page = await browser.newPage({ viewport: { width: 1520, height: 1450 } })
  const images = await Promise.all([2, 0, 3, 1].map(async i => `<img height=720 src="data:image/png;base64,${(await readFile(files[i])).toString('base64')}">`))
  await page.setContent(`<body style="margin:0;background:#888;display:flex;flex-wrap:wrap;gap:10px">${images.join('')}</body>`)
  await writeFile(path.join(dir, `sheet-${name.replaceAll(' ', '-')}.png`), await page.screenshot())
  await page.close()
  console.log(name)
}
await browser.close()
process.exit(0)
