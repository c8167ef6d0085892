// What changed between two short texts, line by line, as a person reads it: what stays, what goes, what comes. Pure.

export type DiffLine = { sign: ' ' | '-' | '+'; text: string }

const most = 400_000 // pairs of lines that are compared: beyond them the whole of one stands before the whole of the other

export function diff(before: string, after: string): DiffLine[] {
  const a = linesOf(before), b = linesOf(after)
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const keep = (text: string): DiffLine => ({ sign: ' ', text })
  return [...a.slice(0, head).map(keep), ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...a.slice(a.length - tail).map(keep)]
}

// counted is how many lines come and go.
export function counted(lines: readonly DiffLine[]): { more: number; less: number } {
  return { more: lines.filter(l => l.sign === '+').length, less: lines.filter(l => l.sign === '-').length }
}

// linesOf leaves out the empty line behind a last line feed.
function linesOf(text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n')
  if (lines[lines.length - 1] === '') lines.pop()
  return lines
}

// middle is by the longest common subsequence of lines.
function middle(a: string[], b: string[]): DiffLine[] {
  const gone = (text: string): DiffLine => ({ sign: '-', text }), come = (text: string): DiffLine => ({ sign: '+', text })
  if (a.length * b.length > most) return [...a.map(gone), ...b.map(come)]
  const wide = b.length + 1
  const best = new Uint32Array((a.length + 1) * wide)
  const at = (i: number, j: number) => best[i * wide + j] ?? 0
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) best[i * wide + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const out: DiffLine[] = []
  let i = 0, j = 0
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) { out.push({ sign: ' ', text: a[i] ?? '' }); i++; j++ } else if (at(i + 1, j) >= at(i, j + 1)) out.push(gone(a[i++] ?? ''))
    else out.push(come(b[j++] ?? ''))
  }
  return [...out, ...a.slice(i).map(gone), ...b.slice(j).map(come)]
}
