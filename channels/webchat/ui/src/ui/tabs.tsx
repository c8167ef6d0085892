import * as T from '@radix-ui/react-tabs'
import type { ReactNode } from 'react'

// Tabs show one of several views of a page. For views with an address of their own use links with class "tab".
export function Tabs({ label, tabs, value, onChange }: { label: string; tabs: { value: string; label: ReactNode; body: ReactNode }[]; value?: string; onChange?: (value: string) => void }) {
  return (
    <T.Root {...(value === undefined ? { defaultValue: tabs[0]?.value } : { value })} onValueChange={onChange}>
      <T.List className="tabs" aria-label={label}>{tabs.map(t => <T.Trigger key={t.value} className="tab" value={t.value}>{t.label}</T.Trigger>)}</T.List>
      {tabs.map(t => <T.Content key={t.value} value={t.value}>{t.body}</T.Content>)}
    </T.Root>
  )
}
