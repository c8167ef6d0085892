import type { ConfigText } from '../api/types'
import { signed } from '../store/app'
import { Atom } from '../store/atom'

// Edit is a text that is being made of a file.
export type Edit = { file: ConfigText; text: string }

// edited is the one that is open, in memory only, and gone with the sign-in.
export const edited = new Atom<Edit | undefined>(undefined)
signed.subscribe(() => { if (signed.get().state === 'out') edited.set(undefined) })
