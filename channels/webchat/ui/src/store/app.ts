import { call, get, onSignedOut, Problem, signInPath } from '../api/http'
import { forget } from '../api/use'
import type { Me } from '../api/types'
import { Atom } from './atom'
import { Saved } from './saved'

// Signed says whether this browser may speak. "out" has what the sign-in screen explains.
export type Signed =
  | { state: 'asking' }
  | { state: 'out'; was: boolean; problem?: string } // was: this browser was signed in once
  | { state: 'unreachable' }
  | { state: 'in'; me: Me }

export const signed = new Atom<Signed>({ state: 'asking' })

// agentChosen is whose chats are listed; empty: those of all agents.
export const agentChosen = new Saved('parley.agent', '')

// needs is what waits for the person.
export const needs = new Atom({ pairings: 0, approvals: 0, failing: 0 })

const was = new Saved('parley.was', false)

onSignedOut(() => { if (signed.get().state === 'in') leave() })

function leave(problem?: string) {
  forget()
  signed.set({ state: 'out', was: was.get(), problem })
}

let again: ReturnType<typeof setTimeout> | undefined

// who asks the gateway who is signed in, and goes on asking while it does not answer.
export async function who(): Promise<void> {
  clearTimeout(again)
  try {
    signed.set({ state: 'in', me: await get<Me>('/v1/me') })
    was.set(true)
  } catch (err) {
    if (err instanceof Problem && err.status === 401) { leave(); return }
    if (signed.get().state === 'in') return // the live line goes on trying
    signed.set({ state: 'unreachable' })
    again = setTimeout(() => { void who() }, 2000)
  }
}

// invitation is the one-time code of the link that brought this browser here, until it is used.
export const invitation = new Atom('')

// followInvitations takes the code out of the address, and out of the history with it: when the page loads, and when a
// new link is opened in a window that is here already, which changes nothing but the fragment.
export function followInvitations() {
  const take = () => {
    const m = /^#code=([\w-]+)$/.exec(location.hash)
    if (!m) return
    history.replaceState(history.state, '', location.pathname + location.search)
    invitation.set(m[1] ?? '')
  }
  take()
  window.addEventListener('hashchange', take)
}

// signIn changes the code for a cookie. It throws what went wrong.
export async function signIn(): Promise<void> {
  await renewSignIn(invitation.get())
  await who()
  invitation.set('')
}

let redeemed = ''

// renewSignIn changes a code of the machine that Parley runs on for a cookie: who is signed in already is so afresh.
export async function renewSignIn(code: string): Promise<void> {
  await call(signInPath, { method: 'POST', body: { code } })
  redeemed = code
}

// takeInvitation is the code of a link that was opened where somebody is signed in already, once; empty: there is none.
export function takeInvitation(): string {
  const code = invitation.get()
  if (code === redeemed) return ''
  invitation.set('')
  return code
}

export async function signOut(): Promise<void> {
  await call('/v1/sign-out', { method: 'POST', body: {} })
  leave()
}
