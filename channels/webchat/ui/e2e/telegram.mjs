import http from 'node:http'

// Telegram is as much of a Bot API server as lets one stranger write to the bot.
export class Telegram {
  token = '123456:ABC-walk'
  updates = []
  sent = []
  waiting = new Set()

  async start() {
    this.server = http.createServer((req, res) => { void this.serve(req, res) })
    await new Promise((ok, no) => { this.server.once('error', no).listen(0, '127.0.0.1', ok) })
    this.url = `http://127.0.0.1:${this.server.address().port}`
    return this
  }

  stop() {
    this.server.closeAllConnections()
    this.server.close()
  }

  // write has somebody say something to the bot.
  write(user, name, text) {
    const id = this.updates.length + 1
    this.updates.push({ update_id: id, message: { message_id: id, date: Math.floor(Date.now() / 1000), text, from: { id: user, is_bot: false, first_name: name }, chat: { id: user, type: 'private', first_name: name } } })
    for (const wake of this.waiting) wake()
  }

  async serve(req, res) {
    let text = ''
    for await (const piece of req) text += piece
    const method = req.url.split('?')[0].split('/').pop()
    const form = text.startsWith('{') ? JSON.parse(text) : Object.fromEntries(new URLSearchParams(text))
    const answer = result => { res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ ok: true, result })) }
    switch (method) {
      case 'getMe': answer({ id: 123456, is_bot: true, first_name: 'Walk', username: 'walk_bot', can_join_groups: true, can_read_all_group_messages: false }); return
      case 'getWebhookInfo': answer({ url: '', has_custom_certificate: false, pending_update_count: 0 }); return
      case 'sendMessage': {
        this.sent.push(form)
        answer({ message_id: 1000 + this.sent.length, date: Math.floor(Date.now() / 1000), chat: { id: Number(form.chat_id), type: 'private' }, text: form.text })
        return
      }
      case 'getUpdates': {
        const fresh = () => this.updates.filter(u => u.update_id >= Number(form.offset ?? 0))
        if (!fresh().length && Number(form.timeout ?? 0) > 0) {
          await new Promise(wake => {
            this.waiting.add(wake)
            const late = setTimeout(wake, Number(form.timeout) * 1000)
            res.once('close', () => { clearTimeout(late); wake() })
          })
          this.waiting.clear()
        }
        answer(fresh())
        return
      }
      default: answer(true)
    }
  }
}
