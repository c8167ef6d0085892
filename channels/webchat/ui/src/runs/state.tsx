import { Link } from '@tanstack/react-router'
import type { Usage, UsageItem } from '../api/types.gen'
import { cost, number, tokens } from '../ui/format'

// What the states of runs and of messages that wait for one are called, and how they look.
const states: Record<string, { label: string; kind: 'good' | 'warn' | 'bad' | 'accent' | '' }> = {
  running: { label: 'Running', kind: 'accent' }, waiting: { label: 'Waiting for you', kind: 'warn' }, paused: { label: 'Paused', kind: 'warn' },
  completed: { label: 'Completed', kind: 'good' }, failed: { label: 'Failed', kind: 'bad' }, timeout: { label: 'Timed out', kind: 'bad' }, user_stopped: { label: 'Stopped', kind: '' },
  queued: { label: 'Queued', kind: 'accent' }, taken: { label: 'Running', kind: 'accent' }, answered: { label: 'Answered', kind: 'good' }, dropped: { label: 'Dropped', kind: 'bad' },
  cancelled: { label: 'Cancelled', kind: '' }, stale: { label: 'Parked', kind: 'warn' },
}

export const runStates = ['running', 'waiting', 'paused', 'completed', 'failed', 'timeout', 'user_stopped']
export const stateLabel = (state: string): string => states[state]?.label ?? state
export const live = (state: string): boolean => ['running', 'waiting', 'paused', 'queued', 'taken'].includes(state)

export function StateBadge({ state }: { state: string }) {
  return <span className={`badge ${states[state]?.kind ?? ''}`}>{stateLabel(state)}</span>
}

// Reasons are words of the gateway; people get a sentence.
const reasons: Record<string, string> = {
  interrupted: 'A newer message took its place.', stopped: 'Somebody stopped it.', step_limit: 'It reached the most steps that its agent may take.',
  model_auth: 'The model’s server refused the key.', model_rate: 'The model’s server refused more requests for now.', timeout: 'It took longer than sessions.turn_timeout allows.',
}
export const reasonText = (reason: string): string => reasons[reason] ?? reason

export const allTokens = (u: Usage): number => u.inputTokens + u.outputTokens

// Tokens are short, with all four counters on hover.
export function Tokens({ usage }: { usage: Usage }) {
  const all = `${number(usage.inputTokens)} in, ${number(usage.outputTokens)} out, ${number(usage.cacheReadTokens)} read from cache, ${number(usage.cacheWriteTokens)} written to cache`
  return spent(usage) ? <span className="num" title={all}>{tokens(allTokens(usage))}</span> : <span className="faint">–</span>
}

// spent says whether a model has counted anything yet.
export const spent = (u: Usage): boolean => u.inputTokens + u.outputTokens + u.cacheReadTokens + u.cacheWriteTokens > 0

// Cost stands only where it is known. With price it leads to where one is set.
export function Cost({ usage, price }: { usage: Usage; price?: boolean }) {
  if (usage.totalCostUsd !== null) return <span className="num">{cost(usage.totalCostUsd)}</span>
  return price && spent(usage) ? <Link to="/usage" hash="prices" className="small">set a price</Link> : <span className="faint">–</span>
}

// money is what is known of the cost: with a mark where some runs have no price.
export function money(u: UsageItem): string {
  if (u.runs === u.unpriced) return '–'
  return cost(u.knownCostUsd) + (u.unpriced > 0 ? ' +' : '')
}
