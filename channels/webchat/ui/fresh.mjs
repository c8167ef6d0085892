// node fresh.mjs FRESH COMMITTED: is a build of the page the one that is committed? Plain files byte for byte; what brotli and
// gzip made of them, which differs between versions of zlib, by what it unpacks to. Says how much a browser is sent of it.
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'

const [fresh, committed] = process.argv.slice(2)
const most = { '.br': { entry: 180, all: 300 }, '.gz': { entry: 200, all: 340 } } // kB; gzip is for who comes over plain HTTP from another machine
const unpack = { '.br': brotliDecompressSync, '.gz': gunzipSync }
const problems = []

const read = async dir => {
  const names = (await readdir(dir, { recursive: true, withFileTypes: true })).filter(e => e.isFile()).map(e => path.relative(dir, path.join(e.parentPath, e.name)))
  return new Map(await Promise.all(names.sort().map(async n => [n, await readFile(path.join(dir, n))])))
}
const [made, kept] = [await read(fresh), await read(committed)]

// plainOf is what a file unpacks to; undefined: it does not.
function plainOf(name, data) {
  try { return (unpack[path.extname(name)] ?? (d => d))(data) } catch { return undefined }
}

for (const name of new Set([...made.keys(), ...kept.keys()])) {
  const plain = made.get(name.replace(/\.(br|gz)$/, ''))
  const data = kept.get(name)
  if (!made.has(name)) problems.push(`${name} is not in a fresh build`)
  else if (!data) problems.push(`${name} is missing`)
  else if (!plainOf(name, data)?.equals(plain)) problems.push(`${name} is not what a fresh build has`)
}

const entry = ['index.html', ...[...String(kept.get('index.html')).matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(m => m[1])]
const kB = (names, ext) => Math.ceil(names.reduce((n, name) => n + (kept.get(name + ext)?.length ?? 0), 0) / 1000)
const all = [...kept.keys()].filter(n => !unpack[path.extname(n)])
console.log(`ui: a browser gets ${kB(entry, '.br')} kB to begin (${kB(entry, '.gz')} with gzip), ${kB(all, '.br')} of all pages (${kB(all, '.gz')})`)
for (const ext of Object.keys(most)) {
  if (kB(entry, ext) > most[ext].entry) problems.push(`more than ${most[ext].entry} kB before one can write (${ext})`)
  if (kB(all, ext) > most[ext].all) problems.push(`more than ${most[ext].all} kB of all pages (${ext})`)
}
for (const p of problems) console.log(`ui: ${p}`)
process.exit(problems.length ? 1 : 0)
