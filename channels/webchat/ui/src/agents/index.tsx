import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function AgentsPage() {
  return <Page title="Agents"><Empty icon="agent" title="Nothing to show yet" /></Page>
}

export function AgentPage({ agent }: { agent: string }) {
  return <Page title={agent}><Empty icon="agent" title="Nothing to show yet" /></Page>
}
