import type { Config } from '../api/types.gen'

// What stands in the configuration that is in force, as forms need it. Secrets are masked in it.

export type Account = { channel: string; user: string }
export type ModelValue = { name: string; model?: string; base_url?: string }
export type ChannelValue = { name: string; type: string } & Record<string, unknown>
export type PersonValue = { id: string; name?: string; role?: string; tz?: string; accounts?: Account[] | null }
type Values = { models: ModelValue[]; channels: ChannelValue[]; people: PersonValue[] }

export function valuesOf(config: Config | undefined): Values {
  const v = (config?.values ?? {}) as Partial<Record<keyof Values, unknown>>
  const list = <T>(of: unknown) => (Array.isArray(of) ? of as T[] : [])
  return { models: list<ModelValue>(v.models), channels: list<ChannelValue>(v.channels), people: list<PersonValue>(v.people) }
}

// unusedName is a name, or that with the first number that makes it another than those that are taken.
export function unusedName(name: string, taken: readonly string[]): string {
  if (!taken.includes(name)) return name
  for (let n = 2; ; n++) if (!taken.includes(`${name}${n}`)) return `${name}${n}`
}
