import http from 'node:http'

// Model is a scripted model server that speaks OpenAI's Chat Completions, streamed. Its script is async (ask, say) => {}:
// ask is {n, text, round, body, gone}, say is a function that sends a piece of the answer. The stream ends when the script
// does, so that a test holds an answer open for as long as it wants to look at it.
export class Model {
  script = async (ask, say) => { say(`You said: ${ask.text}`) }
  key = '' // whom it answers; empty: everybody
  asked = 0
  bodies = []

  async start() {
    this.server = http.createServer((req, res) => { this.answer(req, res).catch(() => { res.destroy() }) })
    await new Promise((ok, no) => { this.server.once('error', no).listen(0, '127.0.0.1', ok) })
    this.url = `http://127.0.0.1:${this.server.address().port}/v1`
    return this
  }

  stop() {
    this.server.closeAllConnections()
    this.server.close()
  }

  async answer(req, res) {
    let text = ''
    for await (const piece of req) text += piece
    const json = (status, body) => { res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body)) }
    if (this.key && req.headers.authorization !== `Bearer ${this.key}`) { json(401, { error: { message: 'Incorrect API key provided.', type: 'invalid_request_error', code: 'invalid_api_key' } }); return }
    if (req.url.endsWith('/models')) { json(200, { object: 'list', data: ['test-model', 'other-model', 'third'].map(id => ({ id, object: 'model', created: 1, owned_by: 'walk' })) }); return }
    if (!req.url.endsWith('/chat/completions')) { res.writeHead(404).end(); return }
    const body = JSON.parse(text)
    const n = ++this.asked
    this.bodies.push(body)
    const after = body.messages.findLastIndex(m => m.role === 'user')
    const gone = new Promise(ok => { res.once('close', ok) })
    const ask = { n, body, gone, text: plain(body.messages[after]), round: body.messages.slice(after + 1).filter(m => m.role === 'assistant').length }
    let begun = false
    const chunk = (delta, finish = null) => {
      if (!begun) res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      begun = true
      res.write(`data: ${JSON.stringify({ id: `c-${n}`, object: 'chat.completion.chunk', created: 1, model: 'test-model', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`)
    }
    let calls = 0
    const say = piece => { chunk({ role: 'assistant', content: piece }) }
    say.call = (name, args) => { chunk({ tool_calls: [{ index: calls, id: `call_${n}_${calls++}`, type: 'function', function: { name, arguments: JSON.stringify(args) } }] }) }
    say.fail = (status, message, headers = {}) => { begun = true; res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify({ error: { message, type: 'error' } })) }
    say.cut = () => { res.destroy() }
    await this.script(ask, say)
    if (res.writableEnded || res.destroyed) return
    chunk({}, calls > 0 ? 'tool_calls' : 'stop')
    res.write(`data: ${JSON.stringify({ id: `c-${n}`, object: 'chat.completion.chunk', created: 1, model: 'test-model', choices: [], usage: { prompt_tokens: 120, completion_tokens: 30, total_tokens: 150 } })}\n\n`)
    res.end('data: [DONE]\n\n')
  }
}

function plain(message) {
  const c = message?.content
  return typeof c === 'string' ? c : (c ?? []).map(p => p.text ?? '').join('')
}

// gate is a promise with its own handle: await g.open, g.pass().
export function gate() {
  let pass
  const open = new Promise(ok => { pass = ok })
  return { open, pass }
}
