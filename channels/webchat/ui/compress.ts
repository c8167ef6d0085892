import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Plugin } from 'vite'

const small = { br: promisify(brotliCompress), gz: promisify(gzip) }

// compress writes each file of the build twice more, as brotli and gzip have it at their smallest. These are what the
// gateway embeds and serves (page.go).
export function compress(): Plugin {
  return {
    name: 'compress',
    apply: 'build',
    async writeBundle({ dir = 'dist' }) {
      const entries = await readdir(dir, { recursive: true, withFileTypes: true })
      await Promise.all(entries.filter(e => e.isFile()).map(async e => {
        const name = path.join(e.parentPath, e.name)
        const raw = await readFile(name)
        await writeFile(`${name}.br`, await small.br(raw, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length } }))
        await writeFile(`${name}.gz`, await small.gz(raw, { level: 9 }))
      }))
    },
  }
}
