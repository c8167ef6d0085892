import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function ConfigPage() {
  return <Page title="Config"><Empty icon="config" title="Nothing to show yet" /></Page>
}
