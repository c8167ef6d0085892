// node walk.mjs [NAME…]: walks through the page with a real browser and the real binary (PARLEY_BIN), all of them or those
// that are named. One line of JSON for each: {"walk", "ok", "ms", "error"?, "note"?}. A walk that fails leaves its pictures in PARLEY_SHOTS.
import { readdir } from 'node:fs/promises'
import { open } from './chromium.mjs'
import { stepTimeout, World } from './world.mjs'

const atOnce = 3 // walks wait for a sandbox, a restart, a question that runs out
const walks = []
for (const file of (await readdir(new URL('./walks/', import.meta.url))).filter(f => f.endsWith('.mjs')).sort().reverse()) { // the long ones, those of ways.mjs, first
  const { default: some } = await import(`./walks/${file}`)
  for (const [name, run] of Object.entries(some)) walks.push({ name, run })
}
const wanted = process.argv.slice(2)
const todo = walks.filter(w => !wanted.length || wanted.includes(w.name))
const unknown = wanted.filter(n => !walks.some(w => w.name === n))
if (unknown.length) { console.error(`no such walk: ${unknown.join(', ')}`); process.exit(2) }

const browser = await open()
let failed = 0

async function walk({ name, run }) {
  const world = new World(browser, name, process.env.PARLEY_SHOTS)
  const began = Date.now()
  let error, note, late
  try {
    note = await Promise.race([run(world), new Promise((_, no) => { late = setTimeout(() => { no(new Error('the walk does not end')) }, 2 * stepTimeout) })])
    world.quiet()
  } catch (err) {
    failed++
    error = `${err.stack ?? err}${world.complaints.length ? `\npage: ${world.complaints.slice(0, 10).join('\n')}` : ''}\ngateway: ${world.log.slice(-1500)}`
    for (const [i, page] of world.contexts.flatMap(c => c.pages()).entries()) await world.picture(page, `failed-${name}-${i}`).catch(() => undefined)
  }
  clearTimeout(late)
  await world.stop().catch(err => { error ??= String(err) })
  console.log(JSON.stringify({ walk: name, ok: !error, ms: Date.now() - began, error, note: typeof note === 'string' ? note : undefined }))
}

await Promise.all(Array.from({ length: atOnce }, async () => {
  for (let next; (next = todo.shift());) await walk(next)
}))
await browser.close()
process.exit(failed ? 1 : 0)
