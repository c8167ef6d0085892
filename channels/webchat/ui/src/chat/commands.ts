import { useEffect, useState } from 'react'
import { get } from '../api/http'
import type { Command, List } from '../api/types'

let kept: Command[] | undefined

// useCommands is the one table of slash commands, as every channel has it.
export function useCommands(): Command[] {
  const [list, set] = useState(kept ?? [])
  useEffect(() => {
    if (kept) return
    get<List<Command>>('/v1/commands').then(l => { kept = l.items; set(l.items) }, () => undefined)
  }, [])
  return list
}

// matching are the commands that begin with what is typed; those that have it inside come after.
export function matching(list: readonly Command[], text: string): Command[] {
  const word = text.slice(1).toLowerCase()
  const name = (c: Command) => c.name.replace(/^\//, '').toLowerCase()
  return [...list.filter(c => name(c).startsWith(word)), ...list.filter(c => !name(c).startsWith(word) && name(c).includes(word))]
}
