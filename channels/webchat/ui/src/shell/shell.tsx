import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { createContext, Suspense, useCallback, useContext, useEffect, useMemo, useState } from 'react'
import { SideBar } from '../sessions/sidebar'
import { IconButton } from '../ui/button'
import { Caught, lazyPart } from '../ui/lazy'
import { invitation, renewSignIn, takeInvitation } from '../store/app'
import { useAtom } from '../store/atom'
import { toast, Toasts } from '../ui/toast'
import { Connection } from './connection'
import { pages } from './nav'
import { Palette } from './palette'
import { PanelSlot, usePanelSlot } from './panel'

const Asked = lazyPart(() => import('../approvals/dialog'), 'Asked')

const Opener = createContext<() => void>(() => undefined)
const Open = Opener.Provider
// useOpenSide opens the side bar where it is not in view.
export const useOpenSide = () => useContext(Opener)

// Shell is what stands around every page: side bar, page, panel, palette.
export function Shell() {
  const [side, setSide] = useState(false) // open over the page, on a narrow screen
  const [palette, setPalette] = useState(false)
  const panel = usePanelSlot()
  const { slot, claim } = panel
  const context = useMemo(() => ({ slot, claim }), [slot, claim])
  const go = useNavigate()
  const openSide = useCallback(() => { setSide(true) }, [])
  const path = useRouterState({ select: s => s.location.pathname })
  useEffect(() => { setSide(false) }, [path])
  const link = useAtom(invitation)
  useEffect(() => { // a link that was opened here again
    const code = takeInvitation()
    if (code) renewSignIn(code).then(() => { toast('You are freshly signed in: for ten minutes all can be changed here.') }, (err: unknown) => { toast((err as Error).message) })
  }, [link])
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k') { e.preventDefault(); setPalette(p => !p) }
      if ((e.ctrlKey || e.metaKey) && e.shiftKey && e.key.toLowerCase() === 'o') { e.preventDefault(); void go({ to: '/' }) }
      if (e.key === 'Escape' && !e.defaultPrevented) setSide(false)
    }
    window.addEventListener('keydown', key)
    return () => { window.removeEventListener('keydown', key) }
  }, [go])
  const chat = path === '/' || path.startsWith('/chat/') // it has a bar of its own
  const page = chat ? undefined : pages.find(p => path.startsWith(p.to)) ?? { label: path.startsWith('/inbox') ? 'Inbox' : 'Parley' }
  return (
    <PanelSlot value={context}>
      <a className="skip" href="#main">Skip to the page</a>
      <div className={`shell${side ? ' side-open' : ''}${panel.open ? ' panel-open' : ''}`}>
        <SideBar onPalette={() => { setPalette(true) }} onClose={() => { setSide(false) }} />
        {side && <div className="side-veil" onClick={() => { setSide(false) }} />}
        <div className="main">
          {page && <header className="bar narrow-only"><IconButton icon="menu" label="Open the side bar" onClick={() => { setSide(true) }} /><span className="grow truncate">{page.label}</span></header>}
          <Connection />
          <Caught><Suspense fallback={null}><Asked /></Suspense></Caught>
          <main id="main" tabIndex={-1}><Open value={openSide}><Outlet /></Open></main>
        </div>
        <aside className="panel-slot" ref={panel.set} hidden={!panel.open} />
      </div>
      <Palette open={palette} onClose={() => { setPalette(false) }} />
      <Toasts />
    </PanelSlot>
  )
}

// Missing is an address that is nothing.
export function Missing() {
  return <div className="page"><div className="page-in"><h1>There is nothing here</h1><p><Link to="/">Go to the chat</Link></p></div></div>
}
