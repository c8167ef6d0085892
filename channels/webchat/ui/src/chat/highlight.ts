import { useEffect, useState } from 'react'

// Colours for code. The highlighter and its languages come when the first code of a known language is shown.
type Highlight = (code: string, language: string) => string | undefined
let ready: Highlight | undefined
let coming: Promise<Highlight> | undefined

const longest = 50_000 // characters; more is shown without colours

function load(): Promise<Highlight> {
  coming ??= import('./languages').then(m => (ready = m.highlight), () => { coming = undefined; return () => undefined })
  return coming
}

// useHighlight is code as HTML with classes, or undefined while there is none.
export function useHighlight(code: string, language: string, whole: boolean): string | undefined {
  const [, again] = useState(false)
  const wanted = whole && language !== '' && code.length <= longest
  useEffect(() => {
    if (!wanted || ready) return
    let here = true
    void load().then(() => { if (here) again(true) })
    return () => { here = false }
  }, [wanted])
  return wanted ? ready?.(code, language) : undefined
}
