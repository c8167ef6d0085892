import type { Model } from '../api/types.gen'
import { Ago } from '../ui/time'

// ModelState is how a model does.
export function ModelState({ model }: { model: Model | undefined }) {
  if (!model) return null
  if (model.offline) return <span className="badge warn" title="Not a model: the built-in responder, used when none is configured">offline responder</span>
  if (model.down) return <span className="badge bad" title={model.last_error}>unavailable{model.last_error && code(model.last_error)}, retrying{model.next_probe && Date.parse(model.next_probe) > Date.now() ? <> <Ago at={model.next_probe} /></> : ''}</span>
  if (model.failures > 0) return <span className="badge warn" title={model.last_error}>{model.failures} {model.failures === 1 ? 'failure' : 'failures'} in a row</span>
  return <span className="badge good">ready</span>
}

// code is the status in what a provider said of a failure, in brackets.
const code = (said: string): string => { const m = /\b([45]\d\d)\b/.exec(said); return m ? ` (${m[1] ?? ''})` : '' }
