import { Link } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { post } from '../api/http'
import type { Config } from '../api/types.gen'
import { useAct, useApi } from '../api/use'
import { Button } from '../ui/button'
import { lazyPart } from '../ui/lazy'
import { Page } from '../ui/page'
import { Failed, Note, Skeleton } from '../ui/states'
import { Ago } from '../ui/time'
import { toast } from '../ui/toast'

const Editor = lazyPart(() => import('./editor'), 'Editor')
const InForce = lazy(async () => ({ default: (await import('./force')).InForce }))

// ConfigPage is the file that the gateway reads, in an editor, and what is in force by it.
export function ConfigPage({ search }: { search: { view?: string } }) {
  const { data, error, reload } = useApi<Config>('/v1/config')
  const again = useAct(async () => { await post('/v1/config/reload'); toast('The file is read again.'); setTimeout(reload, 600) })
  const force = search.view === 'force'
  return (
    <Page title="Config" acts={<Button icon="again" busy={again.busy} onClick={() => { void again.run() }}>Reload the file</Button>}
      lead={data && (data.path ? <>Read from <code>{data.path}</code>. What is saved here is in force at once, or not at all.</> : 'There is no file yet: all is default. What is saved here becomes one.')}>
      {(error ?? again.error) && <Failed error={(error ?? again.error) as Error} retry={reload} />}
      {data?.problem && <Note kind="bad"><strong>The file has an error.</strong> The former configuration is in force since <Ago at={data.since} />. {data.problem}</Note>}
      {data?.waits && data.waits.length > 0 && <Note>Some changes wait for a restart: {data.waits.join(', ')}.</Note>}
      <nav className="tabs" aria-label="What is shown">
        <Link className="tab" to="/config" search={{}} replace aria-current={force ? undefined : 'page'}>The file</Link>
        <Link className="tab" to="/config" search={{ view: 'force' }} replace aria-current={force ? 'page' : undefined}>In force</Link>
      </nav>
      <Suspense fallback={<Skeleton lines={8} />}>{force ? <InForce /> : <Editor onSaved={reload} />}</Suspense>
    </Page>
  )
}
