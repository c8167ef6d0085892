// Numbers, times and sizes as people read them. Pure; the language is the browser's.

const count = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat()

// tokens: 950, 12.3k, 1.2M.
export function tokens(n: number): string {
  if (n < 1000) return whole.format(n)
  if (n < 999_950) return `${count.format(n / 1000)}k`
  return `${count.format(n / 1_000_000)}M`
}

export const number = (n: number): string => whole.format(n)

// cost in US dollars.
export function cost(usd: number): string {
  if (usd === 0) return '$0'
  if (usd < 0.0001) return '<$0.0001'
  return `$${usd.toFixed(usd < 0.01 ? 4 : usd < 1 ? 3 : 2)}`
}

// lasted: 40 ms, 1.4 s, 12 s, 3 min 5 s, 2 h 10 min.
export function lasted(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10_000) return `${(Math.max(ms, 0) / 1000).toFixed(1)} s`
  const s = Math.round(ms / 1000)
  if (s < 60) return `${s} s`
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`
  if (n < 1024 * 1024) return `${count.format(n / 1024)} KB`
  if (n < 1024 ** 3) return `${count.format(n / 1024 / 1024)} MB`
  return `${count.format(n / 1024 ** 3)} GB`
}

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })

// ago is a time as seen from now.
export function ago(at: Date, now: number): string {
  const s = Math.round((at.getTime() - now) / 1000)
  const a = Math.abs(s)
  if (a < 10) return 'just now'
  if (a < 60) return relative.format(s, 'second')
  if (a < 3600) return relative.format(Math.trunc(s / 60), 'minute')
  if (a < 86_400) return relative.format(Math.trunc(s / 3600), 'hour')
  if (a < 30 * 86_400) return relative.format(Math.trunc(s / 86_400), 'day')
  return at.toLocaleDateString()
}

export const exact = (at: Date): string => at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

// dayOf says under which heading of a list something stands.
export function dayOf(at: Date, now: number): string {
  const day = (d: Date) => new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime()
  const days = Math.round((day(new Date(now)) - day(at)) / 86_400_000)
  if (days <= 0) return 'Today'
  if (days === 1) return 'Yesterday'
  if (days < 7) return 'Last 7 days'
  if (days < 30) return 'Last 30 days'
  return at.toLocaleDateString(undefined, { month: 'long', year: 'numeric' })
}

// short is how ids are shown: their last six characters.
export const short = (id: string): string => id.slice(-6)

// shown is a name that somebody gave themselves: what would hide or turn letters around is seen as a box.
export const shown = (name: string): string => name.replace(/[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu, '□')
