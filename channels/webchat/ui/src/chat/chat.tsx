// ChatPage is one conversation; without a key a new one.
import type { ChatSearch } from '../router'

export function ChatPage({ sessionKey }: { sessionKey?: string; search: ChatSearch }) {
  return <div className="page">{sessionKey ?? 'New chat'}</div>
}
