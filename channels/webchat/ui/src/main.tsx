import './ui/tokens.css'
import './ui/base.css'
import './ui/ui.css'
import './shell/shell.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app'
import { followInvitations, who } from './store/app'
import { followTheme } from './ui/theme'

followTheme()
followInvitations()
void who()
const root = document.getElementById('root')
if (root) createRoot(root).render(<StrictMode><App /></StrictMode>)
