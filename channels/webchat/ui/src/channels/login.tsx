import { useEffect, useRef, useState } from 'react'
import { call, get, post, segment, Unreachable } from '../api/http'
import type { Channel, Login } from '../api/types.gen'
import { useAct } from '../api/use'
import { useLine } from '../store/line'
import { Button } from '../ui/button'
import { Copy } from '../ui/copy'
import { Confirm, Dialog } from '../ui/dialog'
import { lasted, shown } from '../ui/format'
import { Failed, Note } from '../ui/states'
import { toast } from '../ui/toast'
import { linked, networkName, sentence, unlinked } from './say'

const loginOf = (name: string) => `/v1/channels/${segment(name)}/login`
const giveUp = (name: string) => call(loginOf(name), { method: 'DELETE', body: {} }).catch(() => undefined)

// LinkPhone links an account that lives on a phone: by a code to scan, or by one to type there.
export function LinkPhone({ channel: c, changed, begin }: { channel: Channel; changed: () => void; begin?: boolean }) {
  const [open, set] = useState(false)
  const can = unlinked(c)
  const begun = useRef(false) // who shuts the dialog is not shown it again
  useEffect(() => { if (begin && can && !begun.current) { begun.current = true; set(true) } }, [begin, can])
  const [asking, ask] = useState(false)
  const cancel = useRef<HTMLButtonElement>(null)
  const out = useAct(async () => { await post(`/v1/channels/${segment(c.name)}/logout`); toast(`${c.name} is unlinked.`); changed() })
  const close = () => { set(false); void giveUp(c.name) }
  return (
    <>
      {out.error && <Failed error={out.error} />}
      {can && <Button kind="small primary" icon="phone" onClick={() => { set(true) }}>Link a phone</Button>}
      {linked(c) && <Button kind="small danger" icon="out" onClick={() => { ask(true) }}>Unlink</Button>}
      <Dialog open={open} onClose={close} title={`Link ${c.name} to ${networkName(c.type)}`} onOpen={e => { e.preventDefault(); cancel.current?.focus() }} foot={<Button ref={cancel} onClick={close}>Cancel</Button>}>
        {open && <Linking channel={c} done={() => { set(false); toast(`${c.name} is linked.`); changed() }} />}
      </Dialog>
      <Confirm open={asking} onClose={() => { ask(false) }} title={`Unlink ${c.name}?`} text="It leaves the phone’s list of linked devices and answers nobody until a phone is linked again." act="Unlink" busy={out.busy}
        onConfirm={() => { void out.run().then(() => { ask(false) }) }} />
    </>
  )
}

// Linking follows one attempt: codes come and go until one is used. An attempt that a restart of the gateway ended is begun
// again when it is back.
function Linking({ channel: c, done }: { channel: Channel; done: () => void }) {
  const { name } = c
  const [step, set] = useState<Login>()
  const [error, fail] = useState<Error>()
  const [phone, setPhone] = useState('')
  const [by, setBy] = useState<string>() // the number that a code was asked for
  const [turn, again] = useState(0)
  const online = useLine().state === 'open'
  useEffect(() => {
    const stop = new AbortController()
    const follow = async () => {
      let l = await post<Login>(loginOf(name), by ? { phone: by } : {})
      while (!stop.signal.aborted) {
        set(l)
        if (l.state === 'linked') { done(); return }
        if (l.state === 'none') throw new Unreachable() // it was begun in a gateway that is gone
        if (l.state !== 'waiting') return
        l = await get<Login>(`${loginOf(name)}?after=${l.step}`, stop.signal)
      }
    }
    follow().catch((err: unknown) => { if (!stop.signal.aborted) { set(undefined); fail(err as Error) } })
    return () => { stop.abort() }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- done is of this render
  }, [name, by, turn])
  const restart = async (number: string | undefined) => {
    await giveUp(name)
    fail(undefined)
    set(undefined)
    setBy(number)
    again(n => n + 1)
  }
  const away = error instanceof Unreachable
  useEffect(() => { if (away && online) { fail(undefined); again(n => n + 1) } }, [away, online])
  const waiting = step?.state === 'waiting' ? step : undefined
  const failed = step?.state === 'failed'
  return (
    <div className="stack">
      {error && <Failed error={error} retry={() => { void restart(by) }} />}
      {failed && <Note kind="bad" act={<Button kind="small" onClick={() => { void restart(by) }}>Try again</Button>}>{sentence(shown(step.error ?? 'that did not work'))}</Note>}
      {!error && !failed && !waiting?.image && !waiting?.code && !waiting?.qr && <div className={by ? 'skeleton phone-wait' : 'qr skeleton'} role="status" aria-label="The code is on its way" />}
      {waiting?.note && <p role="status">{shown(waiting.note)}</p>}
      {waiting?.image && <img className="qr" src={waiting.image} alt="Code to scan with the phone" />}
      {waiting?.code && <p className="phone-code"><code aria-label="Code to type on the phone">{waiting.code}</code><Copy text={waiting.code} label="Copy the code" /></p>}
      {waiting?.expires && <Left key={waiting.step} until={waiting.expires} scan={!waiting.code} />}
      {by !== undefined && <Button kind="small" className="link-other" onClick={() => { void restart(undefined) }}>Show a code to scan instead</Button>}
      <form className="link-phone" onSubmit={e => { e.preventDefault(); void restart(phone.trim() || undefined) }}>
        <label className="label">{by === undefined ? 'No camera at hand? The phone’s number, with its country code' : 'Another number, with its country code'}
          <input className="field" value={phone} inputMode="tel" autoComplete="off" placeholder="+49 170 1234567" onChange={e => { setPhone(e.target.value) }} /></label>
        <Button type="submit" disabled={!phone.trim()}>Get a code to type</Button>
      </form>
    </div>
  )
}

// Left says how long a code is good for. The next one is told by the gateway.
function Left({ until, scan }: { until: string; scan: boolean }) {
  const [now, set] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => { set(Date.now()) }, 1000)
    return () => { clearInterval(timer) }
  }, [])
  const left = Math.ceil((Date.parse(until) - now) / 1000) * 1000
  const long = lasted(Math.max(left, 1000)).replace('.0', '')
  return <p className="small soft num link-left">{left <= 0 ? (scan ? 'The next code is on its way…' : 'This code has run out.') : scan ? `A new code comes in ${long}.` : `Good for ${long}.`}</p>
}
