import type { Post } from '../api/types'
import { Atom } from './atom'
import { newId } from './ids'
import { line } from './line'

// What the gateway says to a conversation beside its transcript. It is told again to every page that comes, so what was
// closed here is remembered by id.
export const postsOf = new Atom<readonly Post[]>([])
const closed = new Set<string>()

line.listen(d => {
  if (d.type !== 'post') return
  const rest = postsOf.get().filter(p => p.id !== d.id)
  postsOf.set(d.removed || closed.has(d.id) ? rest : [...rest, d])
  line.send({ type: 'got', id: d.id })
})

export function dropPost(id: string) {
  closed.add(id)
  postsOf.set(postsOf.get().filter(p => p.id !== id))
}

// press is a button under a post.
export function press(p: Post, value: string) { line.send({ type: 'press', id: newId(), session: p.session, target: p.id, text: value }) }
