import { useEffect, useState } from 'react'
import { call, get, post, segment } from '../api/http'
import type { Channel, Login } from '../api/types.gen'
import { useAct } from '../api/use'
import { Button } from '../ui/button'
import { Confirm, Dialog } from '../ui/dialog'
import { Failed, Note } from '../ui/states'
import { toast } from '../ui/toast'

// LinkPhone links an account that lives on a phone: by a code to scan, or by one to type there.
export function LinkPhone({ channel: c }: { channel: Channel }) {
  const [open, set] = useState(false)
  const [asking, ask] = useState(false)
  const out = useAct(async () => { await post(`/v1/channels/${segment(c.name)}/logout`); toast(`${c.name} is unlinked.`) })
  const linked = c.account !== undefined && c.account !== '' && c.state !== 'needs'
  return (
    <>
      {out.error && <Failed error={out.error} />}
      <div className="row wrap">
        {!linked && <Button kind="small primary" icon="phone" onClick={() => { set(true) }}>Link a phone</Button>}
        {linked && <Button kind="small danger" icon="out" onClick={() => { ask(true) }}>Unlink</Button>}
      </div>
      <Dialog open={open} onClose={() => { set(false); void call(`/v1/channels/${segment(c.name)}/login`, { method: 'DELETE', body: {} }).catch(() => undefined) }} title={`Link ${c.name}`}>
        {open && <Linking name={c.name} done={() => { set(false); toast(`${c.name} is linked.`) }} />}
      </Dialog>
      <Confirm open={asking} onClose={() => { ask(false) }} title={`Unlink ${c.name}?`} text="It leaves the phone’s list of linked devices and answers nobody until a phone is linked again." act="Unlink" busy={out.busy}
        onConfirm={() => { void out.run().then(() => { ask(false) }) }} />
    </>
  )
}

// Linking follows one attempt: codes come and go until one is used.
function Linking({ name, done }: { name: string; done: () => void }) {
  const [step, set] = useState<Login>()
  const [error, fail] = useState<Error>()
  const [phone, setPhone] = useState('')
  const [by, setBy] = useState<string>() // the number that a code was asked for
  const [turn, again] = useState(0)
  useEffect(() => {
    const stop = new AbortController()
    const path = `/v1/channels/${segment(name)}/login`
    const follow = async () => {
      let l = await post<Login>(path, by ? { phone: by } : {})
      while (!stop.signal.aborted) {
        set(l)
        if (l.state === 'linked') { done(); return }
        if (l.state !== 'waiting') return
        l = await get<Login>(`${path}?after=${l.step}`, stop.signal)
      }
    }
    follow().catch((err: unknown) => { if (!stop.signal.aborted) fail(err as Error) })
    return () => { stop.abort() }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- done is of this render
  }, [name, by, turn])
  const restart = async (number: string | undefined) => {
    await call(`/v1/channels/${segment(name)}/login`, { method: 'DELETE', body: {} }).catch(() => undefined)
    fail(undefined)
    set(undefined)
    setBy(number)
    again(n => n + 1)
  }
  return (
    <div className="stack" role="status">
      {error && <Failed error={error} retry={() => { void restart(by) }} />}
      {step?.state === 'failed' && <Note kind="bad" act={<Button kind="small" onClick={() => { void restart(by) }}>Try again</Button>}>{step.error ?? 'That did not work.'}</Note>}
      {!error && (!step || (step.state === 'waiting' && !step.image && !step.code)) && <div className="qr skeleton" aria-label="The code is on its way" />}
      {step?.image && step.state === 'waiting' && <img className="qr" src={step.image} alt="Code to scan with the phone" />}
      {step?.code && step.state === 'waiting' && <p className="phone-code" aria-label="Code to type on the phone"><code>{step.code}</code></p>}
      {step?.note && <p className="soft small">{step.note}</p>}
      <form className="row wrap" onSubmit={e => { e.preventDefault(); void restart(phone.trim() || undefined) }}>
        <label className="grow small soft">No camera? The phone’s number, with its country: <input className="field" value={phone} inputMode="tel" placeholder="491701234567" onChange={e => { setPhone(e.target.value) }} /></label>
        <Button kind="small" type="submit" disabled={!phone.trim()}>Get a code to type</Button>
      </form>
    </div>
  )
}
