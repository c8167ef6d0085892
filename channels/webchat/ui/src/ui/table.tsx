import type { ReactNode } from 'react'

export type Column<T> = { head: ReactNode; cell: (row: T) => ReactNode; end?: boolean; nowrap?: boolean }

// Table scrolls sideways by itself; the page never does. On a narrow screen each row becomes a card, whose lines say what
// they are. The caption names it for screen readers.
export function Table<T>({ caption, columns, rows, id }: { caption: string; columns: Column<T>[]; rows: T[]; id: (row: T) => string }) {
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label={caption}>
      <table className="table cards-narrow">
        <caption className="sr-only">{caption}</caption>
        <thead><tr>{columns.map((c, i) => <th key={i} scope="col" className={c.end ? 'end' : undefined}>{c.head}</th>)}</tr></thead>
        <tbody>
          {rows.map(r => <tr key={id(r)}>{columns.map((c, i) => <td key={i} data-label={typeof c.head === 'string' && i > 0 ? c.head : undefined} className={[c.end && 'end', c.nowrap && 'nowrap'].filter(Boolean).join(' ') || undefined}>{c.cell(r)}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  )
}
