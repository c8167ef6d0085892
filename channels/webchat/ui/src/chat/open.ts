import { useState } from 'react'

const opened = new Set<string>() // ids of what somebody opened, for as long as the page is here

// useOpen is whether something is open. It stays so when it is scrolled out of view, where a long list forgets its lines.
export function useOpen(id: string): [open: boolean, set: (open: boolean) => void] {
  const [open, show] = useState(() => opened.has(id))
  return [open, to => {
    if (to) opened.add(id)
    else opened.delete(id)
    show(to)
  }]
}
