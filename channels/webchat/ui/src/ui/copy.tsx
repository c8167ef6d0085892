import { useState } from 'react'
import { IconButton } from './button'

// copyText also works where the page is served without TLS, where the clipboard's own interface is missing.
export async function copyText(text: string): Promise<boolean> {
  try {
    if (window.isSecureContext) { await navigator.clipboard.writeText(text); return true }
  } catch { /* asked below in the old way */ }
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'sr-only'
  document.body.append(area)
  area.select()
  const ok = document.execCommand('copy')
  area.remove()
  return ok
}

export function Copy({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) {
  const [done, setDone] = useState(false)
  return (
    <IconButton icon={done ? 'check' : 'copy'} label={done ? 'Copied' : label} onClick={() => {
      void copyText(typeof text === 'string' ? text : text()).then(ok => { if (ok) { setDone(true); setTimeout(() => { setDone(false) }, 1500) } })
    }} />
  )
}
