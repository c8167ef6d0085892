// newId is unique enough for a client's message: time and 80 random bits, in letters and digits.
export function newId(): string {
  const b = crypto.getRandomValues(new Uint8Array(16))
  return Date.now().toString(36) + Array.from(b, x => letters[x % 32]).join('')
}

// newName names a chat that begins here.
export function newName(): string {
  return `chat-${Array.from(crypto.getRandomValues(new Uint8Array(10)), x => letters[x % 32]).join('')}`
}

const letters = '0123456789abcdefghjkmnpqrstvwxyz'
