import { Empty } from '../ui/states'
import { Page } from '../ui/page'

export function ChannelsPage() {
  return <Page title="Channels"><Empty icon="channel" title="Nothing to show yet" /></Page>
}
