import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function SessionsPage() {
  return <Page title="Sessions"><Empty icon="chat" title="Nothing to show yet" /></Page>
}
