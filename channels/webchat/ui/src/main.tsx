import './ui/tokens.css'
import './ui/base.css'
import './ui/ui.css'
import './shell/shell.css'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app'
import { codeOf, who } from './store/app'
import { followTheme } from './ui/theme'

followTheme()
const code = codeOf()
void who()
const root = document.getElementById('root')
if (root) createRoot(root).render(<StrictMode><App code={code} /></StrictMode>)
