import { useEffect, useRef } from 'react'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { UsageItem } from '../api/types.gen'
import { tokens } from '../ui/format'

const height = 220

// Chart draws tokens in and out over days. The table below it says the same in numbers, so that it is decoration to a
// screen reader.
export function Chart({ items }: { items: UsageItem[] }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const host = box.current
    if (!host) return
    const draw = () => {
      const css = getComputedStyle(host)
      const ink = css.color
      const axis = { stroke: ink, grid: { stroke: css.borderTopColor, width: 1 }, ticks: { stroke: css.borderTopColor }, font: `12px ${css.fontFamily}` }
      const bars = uPlot.paths.bars?.({ size: [0.7, 40] })
      return new uPlot({
        width: host.clientWidth, height, cursor: { y: false, drag: { x: false, y: false } }, scales: { x: { time: true, range: (_u, min, max) => [min - 43_200, max + 43_200] }, y: { range: (_u, _min, max) => [0, Math.max(1, max * 1.1)] } },
        tzDate: ts => uPlot.tzDate(new Date(ts * 1000), 'UTC'),
        axes: [{ ...axis, values: (_u, ts) => ts.map(v => new Date(v * 1000).toLocaleDateString(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' })), incrs: [1, 2, 5, 7, 14, 30, 60].map(d => d * 86_400), space: 64 },
          { ...axis, values: (_u, vs) => vs.map(v => tokens(v)), size: 56 }],
        legend: { show: items.some(i => i.usage.inputTokens + i.usage.outputTokens > 0) },
        series: [{ value: (_u, v) => v ? new Date(v * 1000).toISOString().slice(0, 10) : '–' },
          { label: 'All tokens', stroke: resolved(host, '--line-strong'), fill: resolved(host, '--line-strong'), paths: bars, points: { show: false }, value: (_u, v) => v === null ? '–' : tokens(v) },
          { label: 'Answers', stroke: resolved(host, '--accent'), fill: resolved(host, '--accent'), paths: bars, points: { show: false }, value: (_u, v) => v === null ? '–' : tokens(v) }],
      }, [items.map(i => Date.parse(`${i.key}T00:00:00Z`) / 1000), items.map(i => i.usage.inputTokens + i.usage.outputTokens), items.map(i => i.usage.outputTokens)], host)
    }
    let plot = draw()
    const again = () => { plot.destroy(); plot = draw() }
    const size = new ResizeObserver(() => { if (host.clientWidth !== plot.width) plot.setSize({ width: host.clientWidth, height }) })
    size.observe(host)
    const theme = new MutationObserver(again)
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', again)
    return () => { size.disconnect(); theme.disconnect(); dark.removeEventListener('change', again); plot.destroy() }
  }, [items])
  return <div className="chart" ref={box} aria-hidden="true" />
}

// resolved is a colour of the tokens as the canvas understands it: light-dark() is resolved by the style, not by it.
function resolved(host: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  host.append(probe)
  const colour = getComputedStyle(probe).color
  probe.remove()
  return colour
}
