import type { FileRef } from '../api/types'
import { Saved } from './saved'

// What is being written, by session key ("" is the new chat). It survives a reload.
export type Draft = { text: string; files: FileRef[] }
const empty: Draft = { text: '', files: [] }
const drafts = new Saved<Record<string, Draft>>('parley.drafts', {})

export const draft = (key: string): Draft => drafts.get()[key] ?? empty

export function setDraft(key: string, d: Draft) {
  const all = { ...drafts.get() }
  if (d.text || d.files.length) all[key] = d
  else delete all[key]
  drafts.set(all)
}
