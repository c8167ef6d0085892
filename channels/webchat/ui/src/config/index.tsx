import { useMemo, useState } from 'react'
import { post } from '../api/http'
import type { Config } from '../api/types.gen'
import { useAct, useApi } from '../api/use'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { Page } from '../ui/page'
import { Failed, Note, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import { toast } from '../ui/toast'
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

// ConfigPage shows what the gateway runs with. Nothing can be changed here: the file is the place for that.
export function ConfigPage() {
  const { data, error, reload } = useApi<Config>('/v1/config')
  const [find, setFind] = useState('')
  const again = useAct(async () => { await post('/v1/config/reload'); toast('The file is read again. If something in it is wrong, this page says what, and the former one stays.'); setTimeout(reload, 600) })
  const all = useMemo(() => parts(data?.yaml ?? ''), [data])
  const word = find.trim().toLowerCase()
  const shown = word ? all.filter(p => p.lines.some(l => l.toLowerCase().includes(word))) : all
  return (
    <Page title="Config" lead={data && (data.path ? <>Everything in force, defaults too. It is read from <code>{data.path}</code>; change it there.</> : <>There is no file: all of this is default. <code>parley onboard</code> writes one.</>)}
      acts={<>{data && <Copy text={data.yaml} label="Copy all of it" />}<Button icon="again" busy={again.busy} onClick={() => { void again.run() }}>Read the file again</Button></>}>
      {(error ?? again.error) && <Failed error={(error ?? again.error) as Error} retry={reload} />}
      {!data ? !error && <Skeleton lines={8} /> : (
        <>
          {data.problem && <Note kind="bad"><strong>The file has an error.</strong> The former configuration is in force since <Ago at={data.since} />. {data.problem}</Note>}
          {data.waits && data.waits.length > 0 && <Note>Some changes wait for a restart: {data.waits.join(', ')}.</Note>}
          <Note>Credentials are masked. They never leave the gateway.</Note>
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
    </Page>
  )
}

function Line({ text, mark }: { text: string; mark: string }) {
  const m = /^(\s*(?:- )?)([\w.]+)(:)(.*)$/.exec(text)
  const hit = mark !== '' && text.toLowerCase().includes(mark)
  return <span className={hit ? 'hit' : undefined}>{m ? <>{m[1]}<span className="yaml-key">{m[2]}</span>{m[3]}{value(m[4] ?? '')}</> : text}{'\n'}</span>
}

const value = (text: string) => text.includes('[secret]') ? <span className="faint">{text}</span> : text
