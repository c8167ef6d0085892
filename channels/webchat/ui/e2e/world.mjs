import { spawn, execFile } from 'node:child_process'
import { mkdtemp, readFile, rename, rm, writeFile, cp, mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Model } from './model.mjs'

const binary = process.env.PARLEY_BIN
const running = new Set()
process.on('exit', () => { for (const child of running) child.kill('SIGKILL') })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => { process.exit(1) })

export const stepTimeout = Number(process.env.PARLEY_STEP_TIMEOUT ?? 60_000) // ms; only something broken takes as long

let fakes // the address of those who play networks, for all walks

// startFakes runs them (cmd/parley/internal/walktest); they end with us.
function startFakes() {
  return fakes ??= new Promise((ok, no) => {
    const child = spawn(process.env.PARLEY_WORLD, ['fakes'], { stdio: ['pipe', 'pipe', 'inherit'] })
    running.add(child)
    child.stdout.once('data', d => { ok(String(d).trim()) })
    child.once('error', no)
    child.once('exit', code => { running.delete(child); no(new Error(`the fakes ended with ${code}`)) })
  })
}

// Fake is a network that speaks its real wire: options are what a channel's section of the configuration needs.
export class Fake {
  static async make(kind) {
    const f = new Fake()
    f.base = await startFakes()
    Object.assign(f, await (await fetch(`${f.base}/${kind}`, { method: 'POST' })).json())
    return f
  }

  // channel is its section, with more options.
  channel(name, more = {}) {
    return `  - {${Object.entries({ name, ...this.options, ...more }).map(([k, v]) => `${k}: ${JSON.stringify(v)}`).join(', ')}}`
  }

  async act(what, arg = '') {
    const res = await fetch(`${this.base}/${this.id}/${what}`, { method: 'POST', body: arg })
    if (!res.ok) throw new Error(`${what}: ${await res.text()}`)
  }

  async end() { await fetch(`${this.base}/${this.id}`, { method: 'DELETE' }).catch(() => undefined) }
}

// World is one gateway as a process of its own, with its data and a model, and a browser that looks at it.
export class World {
  constructor(browser, name, shots) {
    this.browser = browser
    this.name = name
    this.shots = shots
    this.model = new Model()
    this.log = ''
    this.contexts = []
    this.complaints = []
    this.fakes = []
    this.expected = [] // what the console may say
    this.port = 0
  }

  // start runs the gateway. config is YAML beside what every walk has, or what makes it of the model's address; model further keys of
  // its model, or null: there is none; data is a folder to begin with.
  async start({ config = '', model = '', data } = {}) {
    await this.model.start()
    this.dir = await mkdtemp(path.join(tmpdir(), 'parley-walk-'))
    if (data) await cp(data, path.join(this.dir, 'data'), { recursive: true })
    this.config = typeof config === 'function' ? config(this.model.url) : config
    this.modelKeys = model
    await this.run()
  }

  // fake is a network of this world.
  async fake(kind) {
    const f = await Fake.make(kind)
    this.fakes.push(f)
    return f
  }

  get base() { return `http://127.0.0.1:${this.port}` }

  async configure() {
    await this.writeFile([
      `data_dir: ${this.dir}/data`,
      `gateway: {listen: "127.0.0.1:${this.port}"}`,
      ...(this.modelKeys === null ? [] : ['models:', `  - {name: main, base_url: "${this.model.url}", model: test-model${this.modelKeys}}`]),
      this.config, ''].join('\n'))
  }

  // file is the configuration as it lies there, writeFile what somebody else makes of it.
  file() { return readFile(path.join(this.dir, 'parley.yaml'), 'utf8') }

  async writeFile(text) {
    const file = path.join(this.dir, 'parley.yaml')
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file) // the gateway watches it
  }

  // run starts the process; again after kill, on the same port.
  async run() {
    await this.configure()
    this.child = spawn(binary, ['gateway', '--config', 'parley.yaml'], { cwd: this.dir, env: { PATH: process.env.PATH, HOME: this.dir }, stdio: ['ignore', 'pipe', 'pipe'] })
    const { child } = this
    running.add(child)
    this.ended = new Promise(ok => { child.once('exit', code => { running.delete(child); ok(code) }) })
    const found = new Promise((ok, no) => {
      let out = ''
      this.child.stdout.on('data', d => {
        out += d
        const m = /^WebChat: (http:\/\/[^/]+:(\d+)\/#code=\S+)$/m.exec(out)
        if (m) ok(m)
      })
      this.child.stderr.on('data', d => { this.log += d })
      void this.ended.then(code => { no(new Error(`the gateway ended with ${code}:\n${this.log.slice(-2000)}`)) })
      setTimeout(() => { no(new Error(`the gateway is not ready:\n${out}${this.log.slice(-2000)}`)) }, stepTimeout).unref()
    })
    const [, link, port] = await found
    this.link = link
    this.port = Number(port)
    await this.configure() // for the commands
    this.token = (await readFile(path.join(this.dir, 'data', 'token'), 'utf8')).trim()
  }

  // kill ends the process as a power cut would.
  async kill() {
    this.child.kill('SIGKILL')
    await this.ended
  }

  // freshLink is another way in, as `parley webchat` prints it.
  freshLink() {
    return new Promise((ok, no) => {
      execFile(binary, ['webchat', '--config', 'parley.yaml'], { cwd: this.dir, env: { PATH: process.env.PATH, HOME: this.dir } }, (err, out) => { err ? no(err) : ok(out.trim().replace('WebChat: ', '')) })
    })
  }

  // api asks as a program does, with the token.
  async api(method, where, body) {
    const res = await fetch(this.base + where, { method, headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body) })
    const text = await res.text()
    if (!res.ok) throw new Error(`${method} ${where}: ${res.status} ${text}`)
    return text ? JSON.parse(text) : undefined
  }

  // page opens a window of a browser that knows nothing; one of `context` shares its sign-in.
  async page(options = {}) {
    const context = options.context ?? await this.context(options)
    const page = await context.newPage()
    page.setDefaultTimeout(stepTimeout)
    page.on('pageerror', e => { this.complaints.push(`the page threw ${e.stack ?? e}`) })
    page.on('console', m => { if (m.type() === 'error' || /Content Security Policy/i.test(m.text())) this.complaints.push(`console: ${m.text()} ${m.location().url}`) })
    page.on('request', r => { if (!r.url().startsWith(`${this.base}/`) && !/^(blob|data):/.test(r.url())) this.complaints.push(`asked another place: ${r.url()}`) })
    page.on('dialog', d => { this.complaints.push(`a dialog: ${d.message()}`); void d.dismiss() })
    return page
  }

  async context({ width = 1280, height = 800, colorScheme = 'light', ...more } = {}) {
    const context = await this.browser.newContext({ viewport: { width, height }, colorScheme, locale: 'en-GB', reducedMotion: 'reduce', ...more })
    this.contexts.push(context)
    return context
  }

  // signedIn is a page in front of the chat.
  async signedIn(options = {}) {
    const page = await this.page(options)
    await page.goto(this.link)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('textbox', { name: 'Message' }).waitFor()
    await page.waitForFunction(behind)
    return page
  }

  // picture keeps what a page looks like, for who has to find out why a walk failed.
  async picture(page, name) {
    if (!this.shots) return
    await mkdir(this.shots, { recursive: true })
    await page.screenshot({ path: path.join(this.shots, `${name}.png`) })
  }

  async stop() {
    for (const c of this.contexts) await c.close().catch(() => undefined)
    if (this.child && this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill('SIGKILL')
      await this.ended
    }
    this.model.stop()
    for (const f of this.fakes) await f.end()
    if (this.dir) await rm(this.dir, { recursive: true, force: true })
  }

  // quiet fails when a page complained of something that the walk does not expect. What a browser says of an answer that
  // is not 2xx, or of a gateway that is away, is expected: walks look at what the page makes of it.
  quiet() {
    const bad = this.complaints.filter(c => !/Failed to load resource|WebSocket connection to/.test(c) && !this.expected.some(e => e.test(c)))
    if (bad.length) throw new Error(bad.join('\n'))
  }
}

// behind says whether the page has what it loads behind the composer: without it no conversation can be drawn when the line is cut.
function behind() {
  const here = new Set(performance.getEntriesByType('resource').map(e => e.name))
  const asked = [...document.querySelectorAll('link[rel=modulepreload]')].map(l => l.href)
  return asked.some(a => a.includes('/conversation-view-')) && asked.every(a => here.has(a))
}

// until waits for something that no locator can tell.
export async function until(what, test) {
  const end = Date.now() + stepTimeout
  for (;;) {
    const got = await test()
    if (got) return got
    if (Date.now() > end) throw new Error(`never: ${what}`)
    await new Promise(ok => { setTimeout(ok, 20) })
  }
}

export function check(ok, what) {
  if (!ok) throw new Error(what)
}

export function same(got, want, what) {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`)
}
