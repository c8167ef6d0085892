import './ui/tokens.css'
import './ui/base.css'
import './ui/ui.css'
import './shell/shell.css'
import './approvals/approval.css' // of what comes behind the composer too: it is little, and cannot be asked for twice
import './chat/call.css'
import './runs/runs.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app'
import { followInvitations, who } from './store/app'
import { followTheme } from './ui/theme'

followTheme()
followInvitations()
const root = document.getElementById('root')
void who().then(() => { if (root) createRoot(root).render(<StrictMode><App /></StrictMode>) }) // until then index.html's skeleton stands there
