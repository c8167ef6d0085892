import type { ReactNode } from 'react'
import { Button } from './button'
import { Icon, type IconName } from './icon'

// Empty teaches: what would stand here, and one thing that works when clicked.
export function Empty({ icon, title, children, act }: { icon?: IconName; title: string; children?: ReactNode; act?: ReactNode }) {
  return <div className="empty">{icon && <Icon name={icon} />}<h2>{title}</h2>{children && <p>{children}</p>}{act}</div>
}

// Skeleton has the size of what comes, so that nothing jumps.
export function Skeleton({ lines = 3, height }: { lines?: number; height?: string }) {
  return (
    <div className="stack" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, i) => <div key={i} className="skeleton" style={{ height: height ?? '2.5rem' }} />)}
    </div>
  )
}

// Note is a message about the state of something, in the flow of the page.
export function Note({ kind, children, act }: { kind?: 'warn' | 'bad'; children: ReactNode; act?: ReactNode }) {
  return (
    <div className={kind ? `note ${kind}` : 'note'} role={kind === 'bad' ? 'alert' : 'status'}>
      <Icon name={kind ? 'warn' : 'info'} /><div className="grow">{children}</div>{act}
    </div>
  )
}

// Failed shows an error of the API: what happened, what to do, and what to try again.
export function Failed({ error, retry }: { error: Error; retry?: () => void }) {
  return <Note kind="bad" act={retry && <Button kind="small" onClick={retry}>Try again</Button>}>{error.message}</Note>
}
