import type { ReactNode } from 'react'

const mark = /(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]+\]\(https?:\/\/[^)\s]+\)|https?:\/\/[^\s)`]+[^\s).,;:`])/

const External = ({ to, children }: { to: string; children: ReactNode }) => <a href={to} target="_blank" rel="noopener noreferrer">{children}</a>

// Inline is a sentence of Parley's own with code, words that stand out and links in it. Where it quotes somebody nothing in it is a link.
// What models write is drawn by chat/markdown.
export function Inline({ text, quotes }: { text: string; quotes?: boolean }) {
  return (
    <>
      {text.split(mark).map((part, i) => {
        if (i % 2 === 0) return part
        if (part.startsWith('`')) return <code key={i}>{part.slice(1, -1)}</code>
        if (quotes) return part
        if (part.startsWith('**')) return <strong key={i}><Inline text={part.slice(2, -2)} /></strong>
        if (part.startsWith('*')) return <em key={i}>{part.slice(1, -1)}</em>
        const link = /^\[(.+)\]\((.+)\)$/.exec(part)
        return link ? <External key={i} to={link[2] ?? ''}>{link[1]}</External> : <External key={i} to={part}>{part}</External>
      })}
    </>
  )
}
