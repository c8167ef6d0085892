import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function UsagePage() {
  return <Page title="Usage"><Empty icon="usage" title="Nothing to show yet" /></Page>
}
