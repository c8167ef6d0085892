import type { AuditItem } from '../api/types.gen'
import type { IconName } from '../ui/icon'

// What a row of the audit log says in one sentence, and the one line of it that matters most (a command, a host). Pure.

export type Said = { icon: IconName; text: string; line?: string; bad?: boolean }

// kinds are what one may look for: the part of a kind before its dot.
export const kinds: readonly { value: string; label: string }[] = [
  { value: 'approval', label: 'Approvals' }, { value: 'exec', label: 'Commands' }, { value: 'egress', label: 'Hosts that were refused' }, { value: 'pairing', label: 'Strangers let in or sent away' },
  { value: 'people', label: 'People linked' }, { value: 'config', label: 'Configuration' }, { value: 'run', label: 'Runs paused and resumed' }, { value: 'stop', label: 'Everything stopped' },
  { value: 'channel', label: 'Accounts of channels' }, { value: 'signin', label: 'Ways in for browsers' }, { value: 'store', label: 'Losses of data' },
]

const decisions: Record<string, string> = { approved: 'Allowed', consumed: 'Allowed, and done', denied: 'Denied', cancelled: 'Over before it was answered', expired: 'Nobody answered in time', unknown: 'Nobody knows how it ended' }
const ends: Record<string, string> = { done: 'A command ended', failed: 'A command failed', unknown: 'Nobody knows how a command ended' }

export function say(row: AuditItem): Said {
  const w = row.what as Record<string, unknown>
  const word = (name: string): string => { const v = w[name]; return typeof v === 'string' || typeof v === 'number' ? String(v) : '' }
  const list = (name: string): string => { const v = w[name]; return Array.isArray(v) ? v.join(' · ') : '' }
  const lost = (): string => [['inputs', 'messages'], ['answers', 'answers'], ['commits', 'other commits'], ['audit_rows', 'rows of this log']].filter(([name]) => Number(w[name!]) > 0).map(([name, what]) => `${word(name!)} ${what}`).join(' · ')
  const tool = word('tool') || 'a tool'
  switch (row.kind) {
    case 'approval.asked': return { icon: 'warn', text: `A question before ${tool}`, line: word('shown') }
    case 'approval.decided': return { icon: word('state') === 'denied' ? 'close' : 'check', text: `${decisions[word('state')] ?? word('state')}: ${tool}${word('grant') === 'session' ? ', for the session' : ''}`, line: word('reason') }
    case 'approval.revoked': return { icon: 'close', text: `No longer allowed in its session: ${word('allows') || tool}` }
    case 'approval.expired': return { icon: 'clock', text: `Nobody answered in time: ${tool}` }
    case 'exec.started': return { icon: 'terminal', text: 'A command began', line: command(word('args')) }
    case 'exec.ended': return { icon: 'terminal', text: ends[word('state')] ?? `A command: ${word('state')}`, line: word('reason'), bad: word('state') !== 'done' }
    case 'exec.refused': return { icon: 'terminal', text: `A command was ${word('state') === 'cancelled' ? 'called off' : 'refused'}`, line: command(word('args')), bad: true }
    case 'egress.refused': return { icon: 'offline', text: `A command was kept from a host${Number(w.left_out) > 0 ? `, and ${word('left_out')} more times since the last such row` : ''}`, line: `${word('host')}:${word('port')} ${word('reason')}`, bad: true }
    case 'pairing.decided': return { icon: 'person', text: word('state') === 'approved' ? `A stranger was let in${word('role') ? ` as ${word('role')}` : ''}` : `A stranger was sent away`, line: [word('name'), word('channel'), word('user')].filter(Boolean).join(' · ') }
    case 'people.linked': return { icon: 'link', text: 'Two people became one', line: [word('from'), word('into')].filter(Boolean).join(' → ') }
    case 'config.loaded': return { icon: 'config', text: 'Started with another configuration', line: word('path') }
    case 'config.reloaded': return { icon: 'config', text: 'A changed configuration was taken', line: word('path') }
    case 'config.changed': return { icon: 'config', text: 'The configuration was changed', line: list('keys') }
    case 'config.undone': return { icon: 'config', text: `A change was undone: ${word('part')} failed by it`, line: word('why'), bad: true }
    case 'config.refused': return { icon: 'config', text: 'A changed configuration was not taken', line: word('error'), bad: true }
    case 'run.paused': return { icon: 'run', text: 'A run was paused' }
    case 'run.resumed': return { icon: 'run', text: 'A run went on' }
    case 'stop.all': return { icon: 'stop', text: 'Everything was stopped', line: `${word('runs') || '0'} runs` }
    case 'channel.login': return { icon: 'phone', text: `A login of ${word('channel')} was begun` }
    case 'channel.logout': return { icon: 'phone', text: `${word('channel')} was logged out` }
    case 'signin.code': return { icon: 'link', text: 'A link to sign in was made' }
    case 'signin.done': return { icon: 'web', text: 'A browser signed in', line: word('from') }
    case 'store.loss': return { icon: 'warn', text: 'Started although data are missing', line: lost(), bad: true }
    case 'store.fresh': return { icon: 'warn', text: 'Started from nothing, with all that was there moved aside', line: word('aside'), bad: true }
    case 'store.unwitnessed': return { icon: 'warn', text: 'A file that would show a loss was missing, and was made again', line: list('files'), bad: true }
    default: return { icon: 'info', text: row.kind || 'A row that cannot be read', bad: !row.kind }
  }
}

// command is the line in the arguments of exec; what cannot be read is shown as it is.
function command(args: string): string {
  try {
    const v = JSON.parse(args) as { command?: unknown }
    return typeof v.command === 'string' ? v.command : args
  } catch {
    return args
  }
}
