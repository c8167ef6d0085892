import { Line } from '../api/live'
import { Atom, useAtom } from './atom'
import { needs, signed, who } from './app'
import { setNeeds } from '../ui/page'

// line is the live line of this page. It lives from the sign-in to the sign-out.
export const line = new Line(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/v1/live`, () => { void who() })

// updated says that the gateway is another version than the page was loaded from.
export const updated = new Atom(false)

let version = ''

signed.subscribe(() => {
  const s = signed.get()
  if (s.state === 'in') {
    version ||= s.me.version
    line.start()
  } else line.stop()
})

line.listen(d => {
  if (d.type === 'needs') needs.set({ pairings: d.pairings, approvals: d.approvals, failing: d.failing })
  if (d.type === 'hello') updated.set(version !== '' && d.version !== version)
})

needs.subscribe(() => { const n = needs.get(); setNeeds(n.pairings + n.approvals + n.failing) })

export const useLine = () => useAtom(line.state)
