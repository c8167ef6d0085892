import { useState } from 'react'
import type { Approval } from '../api/types'
import { Button } from '../ui/button'
import { number } from '../ui/format'
import { ApprovalCard } from './card'

const few = 20 // that are drawn until more are asked for

// ApprovalList is every question, oldest first. One that is over stays where it stood, without its buttons, for as long as
// others wait: what is below must not move up under somebody's finger.
export function ApprovalList({ asked }: { asked: readonly Approval[] }) {
  const [stays, set] = useState<readonly Approval[]>(asked)
  const [most, more] = useState(few)
  const fresh = asked.filter(a => !stays.some(s => s.id === a.id))
  if (fresh.length > 0) set([...stays, ...fresh])
  const pending = new Set(asked.map(a => a.id))
  return (
    <div className="ask-list">
      {stays.slice(0, most).map(a => <ApprovalCard key={a.id} approval={a} gone={!pending.has(a.id)} />)}
      {stays.length > most && <div className="more"><Button onClick={() => { more(most + few) }}>{`Show more of ${number(stays.length)}`}</Button></div>}
    </div>
  )
}
