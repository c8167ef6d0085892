import { useMemo, useState } from 'react'
import type { Config } from '../api/types.gen'
import { useApi } from '../api/use'
import { Copy } from '../ui/copy'
import { Failed, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import './config.css'

type Part = { key: string; lines: string[] }

// parts cuts the YAML at its top-level keys.
export function parts(yaml: string): Part[] {
  const out: Part[] = []
  for (const line of yaml.replace(/\n$/, '').split('\n')) {
    const key = /^([A-Za-z_]+):/.exec(line)?.[1]
    const last = out[out.length - 1]
    if (key) out.push({ key, lines: [line] })
    else if (last) last.lines.push(line)
  }
  return out
}

// InForce is what the gateway runs with: the file, what is set beside it, and all defaults.
export function InForce() {
  const { data, error, reload } = useApi<Config>('/v1/config')
  const [find, setFind] = useState('')
  const all = useMemo(() => parts(data?.yaml ?? ''), [data])
  const word = find.trim().toLowerCase()
  const shown = word ? all.filter(p => p.lines.some(l => l.toLowerCase().includes(word))) : all
  return (
    <>
      {error && <Failed error={error} retry={reload} />}
      {!data ? !error && <Skeleton lines={8} /> : (
        <>
          <div className="row"><p className="soft small grow">Everything that counts, defaults too, since <Ago at={data.since} />. Credentials are masked: they never leave the gateway.</p><Copy text={data.yaml} label="Copy all of it" /></div>
          <label className="label">Find<input className="field" type="search" value={find} onChange={e => { setFind(e.target.value) }} placeholder="a key or a value" /></label>
          {shown.length === 0 && <p className="soft">Nothing in the configuration has this in it.</p>}
          {shown.map(p => (
            <details key={`${p.key}${word}`} className="config-part" open={word !== '' || p.lines.length <= 24}>
              <summary><code>{p.key}</code><span className="soft small">{p.lines.length === 1 ? p.lines[0]?.slice(p.key.length + 1) : `${p.lines.length} lines`}</span></summary>
              <pre className="config-yaml" tabIndex={0}>{p.lines.map((l, i) => <Line key={i} text={l} mark={word} />)}</pre>
            </details>
          ))}
        </>
      )}
    </>
  )
}

function Line({ text, mark }: { text: string; mark: string }) {
  const m = /^(\s*(?:- )?)([\w.]+)(:)(.*)$/.exec(text)
  const hit = mark !== '' && text.toLowerCase().includes(mark)
  return <span className={hit ? 'hit' : undefined}>{m ? <>{m[1]}<span className="yaml-key">{m[2]}</span>{m[3]}{value(m[4] ?? '')}</> : text}{'\n'}</span>
}

const value = (text: string) => text.includes('[secret]') ? <span className="faint">{text}</span> : text
