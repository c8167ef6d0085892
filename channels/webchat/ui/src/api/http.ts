import type { ProblemBody } from './types'

// Problem is an answer of RFC 9457. Its message is a sentence for people.
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly body: ProblemBody
  constructor(status: number, body: ProblemBody) {
    super(body.detail || body.title || `The gateway answered ${status}.`)
    this.name = 'Problem'
    this.status = status
    this.body = body
    this.code = (body.type ?? '').replace('urn:parley:error:', '')
  }
}

// Unreachable says that no answer came.
export class Unreachable extends Error {
  constructor() {
    super('The gateway does not answer. It may be restarting; this page goes on by itself when it is back.')
    this.name = 'Unreachable'
  }
}

export const signInPath = '/v1/sign-in'

let signedOut = () => { /* nobody listens yet */ }

// onSignedOut is called when the gateway says that nobody is signed in.
export function onSignedOut(f: () => void) { signedOut = f }

export type Call = { method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'; body?: unknown; raw?: Blob; headers?: Record<string, string>; signal?: AbortSignal; keepalive?: boolean }

// call asks the gateway. It throws Problem, Unreachable, or what an abort throws.
export async function call<T>(path: string, { method = 'GET', body, raw, headers, signal, keepalive }: Call = {}): Promise<T> {
  const init: RequestInit = { method, signal, keepalive, credentials: 'same-origin', headers: { Accept: 'application/json', ...headers } }
  if (raw) init.body = raw
  else if (body !== undefined) {
    init.body = JSON.stringify(body)
    init.headers = { ...init.headers, 'Content-Type': 'application/json' }
  }
  let res: Response
  try {
    res = await fetch(path, init)
  } catch (err) {
    if (signal?.aborted) throw err
    throw new Unreachable()
  }
  if (res.status === 401 && path !== signInPath) signedOut() // a wrong code signs nobody out
  if (res.ok) return (res.status === 204 ? undefined : await res.json()) as T
  let problem: ProblemBody = {}
  try { problem = await res.json() as ProblemBody } catch { /* a proxy's page: the status says enough */ }
  throw new Problem(res.status, problem)
}

// segment makes a text one segment of a path: session keys have ":" and "/" in them.
export const segment = encodeURIComponent

export const get = <T>(path: string, signal?: AbortSignal) => call<T>(path, { signal })
export const post = <T>(path: string, body: unknown = {}) => call<T>(path, { method: 'POST', body })
