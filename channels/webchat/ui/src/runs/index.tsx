import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function RunsPage() {
  return <Page title="Runs"><Empty icon="run" title="Nothing to show yet" /></Page>
}

export function RunPage({ run }: { run: string }) {
  return <Page title={`Run ${run}`}><Empty icon="run" title="Nothing to show yet" /></Page>
}
