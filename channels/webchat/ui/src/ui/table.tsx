import type { ReactNode } from 'react'

export type Column<T> = { head: ReactNode; cell: (row: T) => ReactNode; end?: boolean; nowrap?: boolean }

// Table scrolls sideways by itself; the page never does. The caption names it for screen readers.
export function Table<T>({ caption, columns, rows, id }: { caption: string; columns: Column<T>[]; rows: T[]; id: (row: T) => string }) {
  return (
    <div className="table-box" tabIndex={0} role="region" aria-label={caption}>
      <table className="table">
        <caption className="sr-only">{caption}</caption>
        <thead><tr>{columns.map((c, i) => <th key={i} scope="col" className={c.end ? 'end' : undefined}>{c.head}</th>)}</tr></thead>
        <tbody>
          {rows.map(r => <tr key={id(r)}>{columns.map((c, i) => <td key={i} className={[c.end && 'end', c.nowrap && 'nowrap'].filter(Boolean).join(' ') || undefined}>{c.cell(r)}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  )
}
