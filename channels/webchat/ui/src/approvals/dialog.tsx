import { useRouterState } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { approvals } from '../store/approvals'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { Dialog } from '../ui/dialog'
import { Icon } from '../ui/icon'
import { ApprovalCard } from './card'

// Asked says, above whatever page is open, that something waits for a yes or a no elsewhere, and asks it. The focus is on
// the no: a key that was meant for the page must not allow anything.
export function Asked() {
  const all = useAtom(approvals)
  const path = useRouterState({ select: s => s.location.pathname })
  const [open, set] = useState(false)
  const deny = useRef<HTMLButtonElement>(null)
  const here = /^\/chat\/([^/]+)/.exec(path)?.[1]
  const others = path.startsWith('/needs') ? [] : all.filter(a => a.session !== (here && decodeURIComponent(here)))
  const first = others[0]
  return (
    <div role="status" aria-live="polite">
      {first && (
        <div className="ask-wait"><Icon name="warn" /><span className="grow truncate">{others.length > 1 ? `${others.length} questions wait for you` : `${first.agent} asks before it goes on`}: <code>{first.tool}</code></span>
          <Button kind="small" onClick={() => { set(true) }}>Review</Button></div>
      )}
      <Dialog open={open && first !== undefined} onClose={() => { set(false) }} title="It waits for you" onOpen={e => { e.preventDefault(); deny.current?.focus() }}>
        {first && <ApprovalCard key={first.id} approval={first} deny={deny} done={() => { if (others.length < 2) set(false) }} />}
      </Dialog>
    </div>
  )
}
