import { Link } from '@tanstack/react-router'
import { pages } from '../shell/nav'
import { Icon } from '../ui/icon'
import './sessions.css'

// SideBar: the agent, its sessions of every channel, what needs the person, and the pages.
export function SideBar({ onPalette }: { onPalette: () => void; onClose: () => void }) {
  return (
    <nav className="side" aria-label="Sessions and pages">
      <div className="side-top"><button type="button" className="button" onClick={onPalette}>Go to…</button></div>
      <div className="side-list" />
      <div className="side-foot">
        <div className="side-pages">{pages.map(p => <Link key={p.to} to={p.to} className="side-page"><Icon name={p.icon} />{p.label}</Link>)}</div>
      </div>
    </nav>
  )
}
