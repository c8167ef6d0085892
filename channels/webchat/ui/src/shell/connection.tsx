import { useEffect, useState } from 'react'
import { line, updated, useLine } from '../store/line'
import { useAtom } from '../store/atom'
import { Button } from '../ui/button'
import { Icon } from '../ui/icon'

// Connection says when the page is cut off and what that means, after a moment: a short break needs no word.
export function Connection() {
  const l = useLine()
  const fresh = useAtom(updated)
  const [shown, show] = useState(false)
  const cut = l.state !== 'open'
  useEffect(() => {
    if (!cut) { show(false); return }
    const timer = setTimeout(() => { show(true) }, 1500)
    return () => { clearTimeout(timer) }
  }, [cut])
  return (
    <div className="line-box" role="status" aria-live="polite">
      {cut && shown && <div className="line-note"><Icon name="offline" /><span className="grow">{navigator.onLine ? 'Parley does not answer.' : 'You are offline.'} What you write is kept, and sent later.</span><Button kind="small" onClick={line.now}>{l.state === 'connecting' ? 'Trying…' : 'Try now'}</Button></div>}
      {!cut && fresh && <div className="line-note quiet"><Icon name="info" /><span className="grow">Parley was updated.</span><Button kind="small" onClick={() => { location.reload() }}>Reload the page</Button></div>}
    </div>
  )
}
