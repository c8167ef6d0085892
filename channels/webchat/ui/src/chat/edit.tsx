import { useEffect, useRef, useState } from 'react'
import { Button } from '../ui/button'

// EditMessage changes a message that was sent: what comes after it is answered again, the old version stays.
export function EditMessage({ text: was, onSend, onCancel }: { text: string; onSend: (text: string) => void; onCancel: () => void }) {
  const [text, set] = useState(was)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    const a = area.current
    if (!a) return
    a.focus()
    a.setSelectionRange(a.value.length, a.value.length)
  }, [])
  useEffect(() => {
    const a = area.current
    if (!a) return
    a.style.height = 'auto'
    a.style.height = `${a.scrollHeight + 2}px`
  }, [text])
  return (
    <form className="edit" aria-label="Edit the message" onSubmit={e => { e.preventDefault(); if (text.trim()) onSend(text) }}>
      <textarea ref={area} className="field" dir="auto" aria-label="Message to send instead" value={text} onChange={e => { set(e.target.value) }} onKeyDown={e => {
        if (e.key === 'Escape') { e.preventDefault(); onCancel() }
        if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) { e.preventDefault(); if (text.trim()) onSend(text) }
      }} />
      <div className="dialog-foot"><span className="small faint grow">The answers below are written again; this version is kept.</span><Button onClick={onCancel}>Cancel</Button><Button kind="primary" type="submit" disabled={!text.trim()}>Send</Button></div>
    </form>
  )
}
