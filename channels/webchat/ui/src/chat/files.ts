import { call } from '../api/http'
import type { FileRef } from '../api/types'
import { useRef, useState } from 'react'

// Files on their way into a message: uploaded at once, named in the message by reference.
export type Upload = { id: number; name: string; size: number; state: 'sending' | 'ready' | 'failed'; ref?: FileRef; problem?: string; preview?: string }

export const largest = 20 * 1024 * 1024
export const mostFiles = 10

let next = 1

export function useUploads(first: FileRef[], changed: (files: FileRef[]) => void) {
  const [list, set] = useState<Upload[]>(() => first.map(ref => ({ id: next++, name: ref.name, size: ref.size, state: 'ready', ref })))
  const now = useRef(list)
  const put = (f: (l: Upload[]) => Upload[]) => {
    now.current = f(now.current)
    set(now.current)
    changed(now.current.flatMap(u => (u.ref ? [u.ref] : [])))
  }
  const change = (id: number, to: Partial<Upload>) => { put(l => l.map(u => (u.id === id ? { ...u, ...to } : u))) }
  const add = (files: readonly File[]) => {
    for (const f of files.slice(0, mostFiles - now.current.length)) {
      const id = next++
      const preview = f.type.startsWith('image/') ? URL.createObjectURL(f) : undefined
      if (f.size > largest) {
        put(l => [...l, { id, name: f.name, size: f.size, state: 'failed', problem: 'larger than 20 MB', preview }])
        continue
      }
      put(l => [...l, { id, name: f.name, size: f.size, state: 'sending', preview }])
      call<FileRef>(`/v1/files?name=${encodeURIComponent(f.name)}`, { method: 'POST', raw: f, headers: { 'Content-Type': f.type || 'application/octet-stream' } }).then(
        ref => { change(id, { state: 'ready', ref }) },
        (err: unknown) => { change(id, { state: 'failed', problem: (err as Error).message }) },
      )
    }
  }
  const remove = (id: number) => {
    const u = now.current.find(x => x.id === id)
    if (u?.preview) URL.revokeObjectURL(u.preview)
    put(l => l.filter(x => x.id !== id))
  }
  const clear = () => {
    for (const u of now.current) if (u.preview) URL.revokeObjectURL(u.preview)
    now.current = []
    set([])
  }
  return { list, add, remove, clear }
}

// again uploads a file that stands in a transcript once more, so that another message can carry it.
export async function again(f: FileRef): Promise<FileRef> {
  const res = await fetch(fileURL(f.ref), { credentials: 'same-origin' })
  if (!res.ok) throw new Error(`The file ${f.name || ''} is not kept any more, so the message cannot be sent again with it.`)
  return call<FileRef>(`/v1/files?name=${encodeURIComponent(f.name)}`, { method: 'POST', raw: await res.blob(), headers: { 'Content-Type': f.mime || 'application/octet-stream' } })
}

// fileURL is where a file is; name is what to call it where the gateway's record does not say.
export const fileURL = (ref: string, name?: string) => `/v1/files/${encodeURIComponent(ref)}${name ? `?name=${encodeURIComponent(name)}` : ''}`
