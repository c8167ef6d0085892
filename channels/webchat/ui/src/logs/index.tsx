import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function LogsPage() {
  return <Page title="Logs"><Empty icon="log" title="Nothing to show yet" /></Page>
}
