import { rebinding } from '../chromium.mjs'
import { check, same, until } from '../world.mjs'

export default {
  // T03: the code leaves the address at once, and no credential is where a script, a link or a log could find it.
  async 'sign in by the link'(w) {
    await w.start()
    const page = await w.page()
    const code = w.link.split('#code=')[1]
    const asked = []
    page.on('request', r => { asked.push(`${r.url()} ${r.headers().referer ?? ''}`) })
    await page.goto(w.link)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    same(await page.evaluate(() => location.href), `${w.base}/`, 'address with the code gone')
    await page.getByRole('button', { name: 'Sign in' }).click() // one click
    await page.getByRole('textbox', { name: 'Message' }).waitFor()
    check(!asked.some(a => a.includes(code)), 'the code was in an address that was asked for')
    same(await page.evaluate(() => [document.cookie, ...Object.entries(localStorage).flat(), ...Object.entries(sessionStorage).flat()].filter(v => v.length >= 20 && !v.startsWith('{') && !v.startsWith('['))), [], 'what scripts can read')
    const cookies = await page.context().cookies()
    same(cookies.map(c => [c.name, c.httpOnly, c.sameSite]), [[`parley_${w.port}`, true, 'Strict']], 'cookies')
    check(!(await page.content()).includes(w.token) && !w.log.includes(code) && !w.log.includes(w.token), 'a credential in the page or the log')
    await page.goBack().catch(() => undefined)
    check(!page.url().includes('code='), 'the history has the code')
    await page.goto(w.base)
    await page.getByRole('textbox', { name: 'Message' }).waitFor()
    await w.kill()
    await w.run()
    await page.reload()
    await page.getByRole('textbox', { name: 'Message' }).waitFor() // the sign-in is still good
  },

  async 'a code works once'(w) {
    await w.start()
    const first = await w.signedIn()
    const thief = await w.page()
    await thief.goto(w.link)
    await thief.getByRole('button', { name: 'Sign in' }).click()
    await thief.getByText('This link was used before').waitFor()
    await thief.getByText('parley webchat').waitFor() // what to do
    await thief.getByRole('button', { name: 'Copy the command' }).waitFor()
    same((await thief.context().cookies()).length, 0, 'cookies of the second')
    const link = await w.freshLink()
    await thief.goto(link) // in the same window only the fragment changes
    await thief.getByRole('button', { name: 'Sign in' }).click()
    await thief.getByRole('textbox', { name: 'Message' }).waitFor()
    await first.getByRole('textbox', { name: 'Message' }).waitFor()
  },

  // T01: nobody who is not signed in sees anything.
  async 'nothing without a sign-in'(w) {
    await w.start()
    const page = await w.page()
    for (const where of ['/', '/runs', '/config', '/chat/agent%3Aassistant%3Alocal%3Amain']) {
      await page.goto(w.base + where)
      await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor() // who was never in is not signed out
    }
    const answers = await page.evaluate(async () => Promise.all(['/v1/me', '/v1/sessions', '/v1/agents', '/v1/channels', '/v1/pairings', '/v1/status', '/v1/runs', '/metrics', '/v1/live', '/v1/config', '/v1/files/x'].map(async p => (await fetch(p)).status)))
    check(answers.every(s => s === 401), `without a cookie: ${answers}`)
    const line = await page.evaluate(() => new Promise(ok => { const s = new WebSocket(`ws://${location.host}/v1/live`); s.onopen = () => { ok('open') }; s.onerror = () => { ok('refused') } }))
    same(line, 'refused', 'live line without a cookie')
    const inside = await w.signedIn()
    await inside.getByRole('button', { name: /^Account/ }).click()
    await inside.getByRole('menuitem', { name: 'Sign out' }).click()
    await inside.getByRole('heading', { name: 'You are signed out' }).waitFor()
    same(await inside.evaluate(async () => (await fetch('/v1/me')).status), 401, 'after the sign-out')
  },

  // T04: who guesses is stopped.
  async 'wrong codes are limited'(w) {
    await w.start()
    const page = await w.page()
    await page.goto(`${w.base}/#code=AAAAAAAAAAAAAAAAAAAAAAAAAA`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This link was used before').waitFor()
    const statuses = await page.evaluate(async () => {
      const list = []
      for (let i = 0; i < 30; i++) list.push((await fetch('/v1/sign-in', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code: 'B'.repeat(26) }) })).status)
      return list
    })
    check(statuses.every(s => s === 401 || s === 429) && statuses.at(-1) === 429 && statuses.filter(s => s === 401).length <= 20, `wrong codes: ${statuses}`)
    const good = await w.page() // the same address: a good code has to wait, too, and the page says so
    await good.goto(w.link)
    await good.getByRole('button', { name: 'Sign in' }).click()
    await until('it is told to wait, or let in', async () => await good.getByRole('textbox', { name: 'Message' }).isVisible() || await good.getByText(/too many|try again|wait/i).first().isVisible())
  },

  // T02, T20: what a page of another place, or another name for this place, gets.
  async 'other places and other names are refused'(w) {
    await w.start()
    const page = await w.signedIn()
    const { createServer } = await import('node:http')
    const evil = createServer((_, res) => { res.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>evil</title>') })
    await new Promise(ok => { evil.listen(0, '127.0.0.1', ok) })
    w.expected.push(/asked another place: http:\/\/(127\.0\.0\.1|evil\.example|localhost)|CORS policy|Access to fetch|WebSocket/)
    try {
      const other = await page.context().newPage() // the same browser: it has the cookie
      await other.goto(`http://127.0.0.1:${evil.address().port}/`) // same site, another origin: SameSite lets the cookie through
      const tried = await other.evaluate(async base => {
        const live = await new Promise(ok => { const s = new WebSocket(`${base.replace('http', 'ws')}/v1/live`); s.onmessage = m => { ok(`heard ${m.data}`) }; s.onerror = () => { ok('refused') } })
        const read = await fetch(`${base}/v1/me`, { credentials: 'include' }).then(r => `read ${r.status}`, () => 'refused')
        const wrote = await fetch(`${base}/v1/messages`, { method: 'POST', mode: 'no-cors', credentials: 'include', headers: { 'Content-Type': 'text/plain' }, body: JSON.stringify({ text: 'evil' }) }).then(r => r.type, () => 'refused')
        return { live, read, wrote }
      }, w.base)
      same([tried.live, tried.read], ['refused', 'refused'], 'from another origin')
      same((await w.api('GET', '/v1/sessions')).items, [], 'what another origin wrote')
    } finally {
      evil.close()
    }
    // DNS rebinding: a name of somebody else that now leads here. The browser believes the name; it even has a cookie for it.
    const rebound = `http://${rebinding}:${w.port}`
    const { name, value } = (await page.context().cookies())[0]
    await page.context().addCookies([{ name, value, domain: rebinding, path: '/', httpOnly: true, sameSite: 'Strict' }])
    const there = await page.context().newPage()
    const answer = await there.goto(`${rebound}/`)
    check(answer.status() >= 400 && !(await there.content()).includes('/assets/'), `the page under another name: ${answer.status()}`)
    const asked = await there.evaluate(async () => {
      const live = await new Promise(ok => { const s = new WebSocket(`ws://${location.host}/v1/live`); s.onmessage = m => { ok(`heard ${m.data}`) }; s.onerror = () => { ok('refused') } })
      const me = await fetch('/v1/me')
      const sign = await fetch('/v1/sign-in', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"code":"x"}' })
      return { live, me: [me.status, (await me.text()).includes('"person"')], sign: sign.status }
    })
    same(asked.live, 'refused', 'live line under another name')
    check(asked.me[0] >= 400 && asked.me[0] !== 401 && !asked.me[1] && asked.sign >= 400 && asked.sign !== 401, `under another name: ${JSON.stringify(asked)}`)
    same(await page.evaluate(async () => (await fetch('/v1/me')).status), 200, 'its own name') // and the right one works on
  },
}
