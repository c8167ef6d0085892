import { useEffect, type ReactNode } from 'react'

const listeners = { title: 'Parley', needs: 0 }

function show() { document.title = (listeners.needs ? `(${listeners.needs}) ` : '') + listeners.title }

// setNeeds puts what waits for the person before every title.
export function setNeeds(n: number) { listeners.needs = n; show() }

// useTitle names the page in the tab.
export function useTitle(title: string) {
  useEffect(() => { listeners.title = title ? `${title} · Parley` : 'Parley'; show() }, [title])
}

// Page is every page but the chat: a heading, what can be done, and sections.
export function Page({ title, lead, acts, children }: { title: string; lead?: ReactNode; acts?: ReactNode; children: ReactNode }) {
  useTitle(title)
  return (
    <div className="page"><div className="page-in">
      <header className="page-head"><h1 className="grow">{title}</h1>{acts}{lead && <p className="lead">{lead}</p>}</header>
      {children}
    </div></div>
  )
}

export function Section({ title, children, acts }: { title: string; children: ReactNode; acts?: ReactNode }) {
  return <section className="page-section"><div className="row wrap"><h2 className="grow">{title}</h2>{acts}</div>{children}</section>
}
