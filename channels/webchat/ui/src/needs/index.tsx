import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function NeedsPage() {
  return <Page title="Needs me"><Empty icon="bell" title="Nothing to show yet" /></Page>
}
