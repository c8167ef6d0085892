import { useRef } from 'react'
import { post, segment } from '../api/http'
import type { Trouble } from '../api/types.gen'
import { useAct } from '../api/use'
import { SessionModels } from '../models/picker'
import type { Row } from '../store/rows'
import { Button } from '../ui/button'
import { shown } from '../ui/format'
import { Icon } from '../ui/icon'
import { useSeconds } from '../ui/time'
import { toast } from '../ui/toast'
import type { Acts } from './row-view'

const tell = (err: unknown) => { toast((err as Error).message) }

// Remedies are what one can do about a run that a model fails, or has failed: the same wherever it is told of.
export function Remedies({ run, session, over, done }: { run: string; session: string; over: boolean; done?: () => void }) {
  const again = useAct(async () => { await post(`/v1/runs/${segment(run)}/retry`).then(done, tell) })
  const other = useRef<HTMLButtonElement>(null)
  return (
    <>
      <Button kind="small" icon="again" busy={again.busy} onClick={() => { void again.run() }}>Try again</Button>
      <SessionModels session={session} trigger={<Button ref={other} kind="small">Use another model</Button>} picked={() => { if (over) void again.run(); else done?.() }} />
    </>
  )
}

// Cause is what a model failed with: who did what, and below it the words of its server, which are a stranger's.
export function Cause({ trouble: t }: { trouble: Trouble }) {
  const said = t.cause.indexOf(': `')
  return (
    <>
      <strong>{capital(shown(said < 0 ? t.cause : t.cause.slice(0, said)))}</strong>
      {t.message && <q className="failing-said"><bdi>{shown(t.message)}</bdi></q>}
    </>
  )
}

const capital = (s: string): string => s.charAt(0).toUpperCase() + s.slice(1)

// Code is the code of a failure with the model's own name.
export function Code({ trouble: t }: { trouble: Trouble }) {
  return <>{t.status ? `Code ${t.status} · ` : ''}model <bdi>{shown(t.model)}</bdi>{t.provider ? ` of ${t.provider}` : ''}</>
}

// Failing is a model that fails while its turn goes on trying.
export function Failing({ trouble: t, due, asking, run, session, acts }: { trouble: Trouble; due?: number; asking: boolean; run: string; session: string; acts: Acts }) {
  return (
    <div className="note bad failing" role="alert">
      <Icon name="warn" />
      <div className="grow">
        <Cause trouble={t} />
        <p className="small soft num"><Code trouble={t} />{(t.failures ?? 0) > 1 && <> · {t.failures} tries</>} · <Next trouble={t} due={due} asking={asking} /></p>
      </div>
      <div className="row wrap">
        <Remedies run={run} session={session} over={false} />
        <Button kind="small" onClick={() => { acts.showRun(run) }}>Show the run</Button>
      </div>
    </div>
  )
}

// Next says when the model is asked again. A screen reader is not told each second.
function Next({ trouble: t, due, asking }: { trouble: Trouble; due?: number; asking: boolean }) {
  useSeconds(due ?? 0)
  const left = due === undefined ? 0 : Math.ceil((due - Date.now()) / 1000)
  if (asking) return 'asking again now'
  if (left <= 0) return 'asking again'
  return <>{t.stated ? 'it asks to wait, ' : ''}next try <span aria-hidden="true">in {left} s</span></>
}

// Silent is a model that was asked and has sent nothing for a while.
export function Silent({ who, since, run, session, acts }: { who: string; since: number; run: string; session: string; acts: Acts }) {
  const seconds = useSeconds(since)
  return (
    <div className="note warn failing" role="status">
      <Icon name="clock" />
      <div className="grow"><strong>No answer from <bdi>{shown(who)}</bdi> <span aria-hidden="true" className="num">for {seconds} s</span></strong></div>
      <div className="row wrap">
        {acts.stop && <Button kind="small" icon="stop" onClick={acts.stop}>Stop</Button>}
        <Remedies run={run} session={session} over={false} />
        <Button kind="small" onClick={() => { acts.showRun(run) }}>Show the run</Button>
      </div>
    </div>
  )
}

// Failed is the end of a run that a model has failed.
export function Failed({ row, acts, session }: { row: Row & { kind: 'error' }; acts: Acts; session: string }) {
  return (
    <div className="note bad failing" role="note">
      <Icon name="warn" /><div className="grow" dir="auto">{shown(row.text).replace(/`([^`]*)`/g, '“$1”')}</div>
      <div className="row wrap">
        <Remedies run={row.run} session={session} over />
        <Button kind="small" onClick={() => { acts.showRun(row.run) }}>Show the run</Button>
      </div>
    </div>
  )
}
