// node slow.mjs: what `make bench` wants to know of the page on a slow line (400 kbit/s, 400 ms): how soon one can write, with
// an empty cache and with a full one, and how much was sent until then. Prints one line of JSON: each figure with its values.
import { open } from './chromium.mjs'
import { World } from './world.mjs'

const slow = { offline: false, latency: 400, downloadThroughput: 400_000 / 8, uploadThroughput: 400_000 / 8 }
const tries = 5
const figures = { cold: [], warm: [], painted: [], coldKB: [], warmKB: [] } // ms, ms, ms, kB, kB
const browser = await open()
const w = new World(browser, 'slow')
await w.start()
const state = await (await w.signedIn()).context().storageState()

// watch notes when somebody can write, and what was sent until then.
const watch = () => {
  window.ready = new Promise(ok => {
    const look = o => {
      if (!document.querySelector('textarea[aria-label="Message"]:enabled')) return
      o.disconnect()
      requestAnimationFrame(() => {
        const list = performance.getEntries().filter(e => e.entryType === 'navigation' || e.entryType === 'resource')
        ok({ ms: performance.now(), kB: list.reduce((n, e) => n + e.transferSize, 0) / 1000, painted: performance.getEntriesByName('first-paint')[0]?.startTime })
      })
    }
    new MutationObserver((_, o) => { look(o) }).observe(document, { subtree: true, childList: true, attributes: true })
  })
}

// visit loads the page as it is loaded on such a line.
async function visit(context) {
  const page = await w.page({ context })
  const cdp = await context.newCDPSession(page)
  await cdp.send('Network.enable')
  await cdp.send('Network.emulateNetworkConditions', slow)
  await page.addInitScript(watch)
  await page.goto(w.base, { waitUntil: 'commit' })
  const ready = await page.evaluate(() => window.ready)
  await page.waitForLoadState('load')
  await page.waitForFunction(() => performance.getEntriesByType('resource').every(e => e.responseEnd > 0))
  await page.close()
  return ready
}

for (let i = 0; i < tries; i++) {
  const context = await w.context({ storageState: state })
  const cold = await visit(context)
  const warm = await visit(context)
  await context.close()
  figures.cold.push(cold.ms)
  figures.painted.push(cold.painted)
  figures.coldKB.push(cold.kB)
  figures.warm.push(warm.ms)
  figures.warmKB.push(warm.kB)
}
await w.stop()
await browser.close()
console.log(JSON.stringify(figures))
process.exit(0)
