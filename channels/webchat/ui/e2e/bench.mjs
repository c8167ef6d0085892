// node bench.mjs: what `make bench` wants to know of the page. Prints one line of JSON: each figure with its values in ms.
import { performance } from 'node:perf_hooks'
import { open } from './chromium.mjs'
import { gate } from './model.mjs'
import { answered, answers, send, stopButton } from './page.mjs'
import { until, World } from './world.mjs'

const clients = 200, streams = 20, tries = 40
const now = () => performance.timeOrigin + performance.now()
const figures = { first: [], stop: [], frames: [] }
const browser = await open()

// seen is when a frame shows the text, by the page's clock.
const seen = (page, text) => page.evaluate(text => new Promise(ok => {
  const look = () => {
    if (![...document.querySelectorAll('.answer')].some(a => a.textContent.includes(text))) return false
    requestAnimationFrame(() => { ok(performance.timeOrigin + performance.now()) })
    return true
  }
  if (!look()) new MutationObserver((_, o) => { if (look()) o.disconnect() }).observe(document.body, { subtree: true, childList: true, characterData: true })
}), text)

{ // the first words of an answer, while 200 pages each follow a session that streams; and how soon a stop is shown
  const w = new World(browser, 'bench')
  let hold, said, streaming = 0
  w.model.script = async (ask, say) => {
    if (ask.text.startsWith('Stream')) { // one of those that the crowd follows
      let gone = false
      void ask.gone.then(() => { gone = true })
      for (streaming++; !gone; await new Promise(ok => { setTimeout(ok, 200) })) say('word by word, ')
      return
    }
    said = now()
    say(`Token ${ask.n} of `)
    await Promise.race([hold.open, ask.gone])
    say('the answer.')
  }
  await w.start()
  const page = await w.signedIn()
  hold = gate()
  hold.pass()
  await send(page, 'Begin')
  await answered(page, 'the answer.')
  const keys = await Promise.all(Array.from({ length: streams }, async (_, i) => (await w.api('POST', '/v1/messages', { text: `Stream ${i}`, session: `stream-${i}` })).session))
  await until('all of them stream', () => streaming === streams)
  const crowd = await w.page({ context: page.context() })
  await crowd.goto(`${w.base}/assets/icon.svg`) // not the application: only sockets
  await crowd.evaluate(([n, keys]) => Promise.all(Array.from({ length: n }, (_, i) => new Promise((ok, no) => {
    const s = new WebSocket(`ws://${location.host}/v1/live`)
    s.onmessage = m => {
      const { type, key, event } = JSON.parse(m.data)
      if (type === 'hello') s.send(JSON.stringify({ type: 'follow', key: keys[i % keys.length], session_id: '', after: 0 }))
      if (type === 'event' && event.type === 'item.delta' && key === keys[i % keys.length]) ok()
    }
    s.onclose = () => { no(new Error('a client was dropped')) }
  }))), [clients - 1, keys])
  await page.bringToFront()
  for (let i = 0; i < tries; i++) {
    hold = gate()
    const shown = seen(page, `Token ${w.model.asked + 1} of`)
    await send(page, `Question ${i}`)
    figures.first.push(await shown - said)
    if (i % 4 === 3) { // every fourth is stopped
      const button = await stopButton(page).elementHandle()
      const before = await page.getByText('Stopped here').count()
      figures.stop.push(await button.evaluate((b, before) => new Promise(ok => {
        const began = performance.now()
        new MutationObserver((_, o) => {
          if (document.body.innerText.split('Stopped here').length - 1 > before) { o.disconnect(); requestAnimationFrame(() => { ok(performance.now() - began) }) }
        }).observe(document.body, { subtree: true, childList: true, characterData: true })
        b.click()
      }), before))
    }
    hold.pass()
    await until('the turn is over', async () => await stopButton(page).count() === 0)
  }
  await w.stop()
}

{ // a transcript of 10,000 entries, scrolled with the wheel from its end to its beginning
  const w = new World(browser, 'bench')
  await w.start({ data: process.env.PARLEY_LONG })
  const page = await w.signedIn()
  await page.goto(`${w.base}/chat/${encodeURIComponent('agent:assistant:local:long')}`)
  await answers(page).getByText('Answer 2500 with code').waitFor()
  await page.getByRole('region', { name: /^Conversation/ }).hover()
  await page.evaluate(() => {
    window.frames10k = []
    let last = performance.now()
    const next = at => { window.frames10k.push(at - last); last = at; requestAnimationFrame(next) }
    requestAnimationFrame(next)
  })
  for (let i = 0; i < 300; i++) await page.mouse.wheel(0, -1200)
  figures.frames = await page.evaluate(() => window.frames10k)
  await w.stop()
}

await browser.close()
console.log(JSON.stringify(figures))
process.exit(0)
