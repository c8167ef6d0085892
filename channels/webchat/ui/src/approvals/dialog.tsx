import { useRouterState } from '@tanstack/react-router'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { segment } from '../api/http'
import type { Approval } from '../api/types'
import { useApi } from '../api/use'
import { needs } from '../store/app'
import { approvals } from '../store/approvals'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { number, shown as name } from '../ui/format'
import { Icon } from '../ui/icon'
import { ApprovalCard } from './card'

// Asked says, above whatever page is open, that something waits for a yes or a no elsewhere, and asks it. The focus is on
// the no: a key that was meant for the page must not allow anything. The dialog stays with the question it was opened for:
// another one never takes its place under somebody's finger.
export function Asked() {
  const all = useAtom(approvals)
  const count = useAtom(needs).approvals
  const path = useRouterState({ select: s => s.location.pathname })
  const [shown, show] = useState<Approval>()
  const deny = useRef<HTMLButtonElement>(null)
  const next = useRef<HTMLButtonElement>(null)
  const here = /^\/chat\/([^/]+)/.exec(path)?.[1]
  const others = path.startsWith('/inbox') ? [] : all.filter(a => a.session !== (here && decodeURIComponent(here)))
  const first = others[0]
  const many = Math.max(others.length, count - (all.length - others.length)) // no more than a page of them is read
  const open = shown && all.some(a => a.id === shown.id)
  const after = others.find(a => a.id !== shown?.id)
  useEffect(() => { if (shown && !open) (next.current ?? deny.current)?.focus() }, [shown, open])
  return (
    <div role="status" aria-live="polite">
      {first && (
        <div className="ask-wait"><Icon name="warn" /><span className="grow truncate">{many > 1 ? `${number(many)} questions wait for you` : `${first.agent} asks before it goes on`}: <code>{name(first.tool)}</code></span>
          <Button kind="small" onClick={() => { show(first) }}>Review</Button></div>
      )}
      <Dialog open={shown !== undefined} onClose={() => { show(undefined) }} title="It waits for you" onOpen={e => { e.preventDefault(); deny.current?.focus() }}>
        {shown && (open
          ? <ApprovalCard key={shown.id} approval={shown} deny={deny} done={() => { show(undefined) }} />
          : <Over approval={shown} foot={<><Button ref={deny} onClick={() => { show(undefined) }}>Close</Button>{after && <Button ref={next} onClick={() => { show(after) }}>Next question</Button>}</>} />)}
      </Dialog>
    </div>
  )
}

// Over is a question that was decided elsewhere, or by nobody, while it was looked at.
function Over({ approval: a, foot }: { approval: Approval; foot: ReactNode }) {
  const { data } = useApi<Approval>(`/v1/approvals/${segment(a.id)}`)
  return <div className="stack" role="status"><p>{data ? outcome(data) : 'This question is over.'}</p><div className="row wrap ask-acts">{foot}</div></div>
}

function outcome(a: Approval): string {
  const by = a.decided_by_name || a.decided_by
  switch (a.state) {
    case 'approved': case 'consumed': return `It was allowed${by ? ` by ${name(by)}` : ''}.`
    case 'denied': return `It was denied${by ? ` by ${name(by)}` : ''}.`
    case 'expired': return 'Nobody answered in time, so it is not done.'
    default: return 'This question is over.'
  }
}
