// Dark and light follow the system until somebody chooses; the choice is kept in this browser.
export type Theme = 'system' | 'light' | 'dark'
const name = 'parley.theme'

export function theme(): Theme {
  const t = localStorage.getItem(name)
  return t === 'light' || t === 'dark' ? t : 'system'
}

function apply() {
  const t = theme()
  if (t === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = t
}

export function setTheme(t: Theme) {
  if (t === 'system') localStorage.removeItem(name)
  else localStorage.setItem(name, t)
  apply()
}

export function followTheme() {
  window.addEventListener('storage', e => { if (e.key === name) apply() })
  apply()
}
