import type { Model } from '../api/types.gen'
import { Ago } from '../ui/time'

// ModelState is how a model does.
export function ModelState({ model }: { model: Model | undefined }) {
  if (!model) return null
  if (model.offline) return <span className="badge warn" title="Not a model: the built-in responder, used when none is configured">offline responder</span>
  if (model.down) return <span className="badge bad" title={model.last_error}>cooling down{model.next_probe && Date.parse(model.next_probe) > Date.now() ? <>, next try <Ago at={model.next_probe} /></> : ', tried again with the next message'}</span>
  if (model.failures > 0) return <span className="badge warn" title={model.last_error}>{model.failures} {model.failures === 1 ? 'failure' : 'failures'} in a row</span>
  return <span className="badge good">ready</span>
}
