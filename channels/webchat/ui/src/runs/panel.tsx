import { Link } from '@tanstack/react-router'
import { useApi } from '../api/use'
import { segment } from '../api/http'
import type { Run } from '../api/types'
import { Failed, Skeleton } from '../ui/states'

// RunPanel is the run behind an answer, beside the chat.
export function RunPanel({ run }: { run: string }) {
  const { data, error, reload } = useApi<Run>(`/v1/runs/${segment(run)}`)
  if (error) return <Failed error={error} retry={reload} />
  if (!data) return <Skeleton />
  return <><p>{data.state}</p><Link to="/runs/$run" params={{ run }}>Open the run</Link></>
}
