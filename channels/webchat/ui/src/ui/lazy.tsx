import { Component, lazy, Suspense, type ComponentType, type ReactNode } from 'react'
import { Failed, Skeleton } from './states'

type PropsOf<C> = C extends ComponentType<infer P> ? P : never

// lazyPart loads a part of a page when it is drawn first. It stands in a Suspense, for what is seen until then.
export function lazyPart<K extends string, C extends ComponentType<never>>(load: () => Promise<Record<K, C>>, name: K) {
  return lazy(async () => ({ default: (await patiently(load))[name] as unknown as ComponentType<PropsOf<C>> }))
}

// patiently tries again for some seconds: the gateway may be restarting.
export async function patiently<M>(load: () => Promise<M>): Promise<M> {
  for (let wait = 500; ; wait *= 2) {
    try { return await load() } catch (err) {
      if (wait > 4000) throw err
      await new Promise(ok => { setTimeout(ok, wait) })
    }
  }
}

// lazyPage loads a page when it is opened, with something of its size until then.
export function lazyPage<M extends Record<string, unknown>, K extends keyof M & string>(load: () => Promise<M>, name: K) {
  const Page = lazy(async () => ({ default: (await load())[name] as ComponentType<object> }))
  return function Loaded(props: PropsOf<M[K]> & object) {
    return <Caught><Suspense fallback={<div className="page"><div className="page-in"><Skeleton lines={6} /></div></div>}><Page {...props} /></Suspense></Caught>
  }
}

// Caught keeps what fails in a page in that page: the side bar goes on.
export class Caught extends Component<{ children: ReactNode }, { error?: Error }> {
  override state: { error?: Error } = {}
  static getDerivedStateFromError(error: Error) { return { error } }
  override render() {
    if (!this.state.error) return this.props.children
    const stale = /dynamically imported|module script|preload CSS/i.test(this.state.error.message)
    return (
      <div className="page"><div className="page-in">
        <Failed error={stale ? new Error('Parley was updated while this page was open, or it cannot be reached. Reload the page.') : this.state.error} retry={() => { if (stale) location.reload(); else this.setState({ error: undefined }) }} />
      </div></div>
    )
  }
}
