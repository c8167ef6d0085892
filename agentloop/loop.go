package agentloop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"parley/agentloop/llm"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/disk"
)

// Loop runs turns. It holds no state of a turn, so that one Loop serves all sessions at once.
//
// Goroutines: one for each tool call under way, waited for before the turn goes on; only a tool that does not
// return after its context ended is left behind, and logged.
type Loop struct {
	Models Models
	Tools  tools.Set
	Log    *slog.Logger     // nil: none
	Now    func() time.Time // for what calls last
	Limits Limits
	Hide   *workspace.Redactor // takes secrets out; nil: none are known
	Budget *llm.Budget         // memory of long answers, shared by all turns; nil: it is not bounded
	Disk   *disk.Rule          // under which work folders are written; nil: none
}

// Limits of a turn; a zero field means its default.
type Limits struct {
	MaxSteps    int           // model calls of a turn that names no limit: 20
	Output      int           // bytes of one tool result: 32 KiB
	ToolTimeout time.Duration // of a tool that names none: 2 min
	Settle      time.Duration // that a call waits for its tool to find out, after the start, whether it works: 10 s
	Grace       time.Duration // that a tool has to return after its context ended: 2 s
	Parallel    int           // pure calls at once: 4
	Repeats     int           // times that one run may make the very same call: 5
	Failures    int           // times that a tool may fail with nothing done in between: 8
	Trips       int           // refusals for these two before the turn ends: 3
	Window      int           // tokens of a model that does not say: 32,768
}

func (l Limits) orDefault() Limits {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&l.MaxSteps, 20)
	def(&l.Output, 32<<10)
	def(&l.Parallel, 4)
	def(&l.Repeats, 5)
	def(&l.Failures, 8)
	def(&l.Trips, 3)
	def(&l.Window, 32<<10)
	if l.ToolTimeout <= 0 {
		l.ToolTimeout = 2 * time.Minute
	}
	if l.Settle <= 0 {
		l.Settle = 10 * time.Second
	}
	if l.Grace <= 0 {
		l.Grace = 2 * time.Second
	}
	return l
}

// pass is one try of a turn: all that changes while it runs. It belongs to one goroutine.
type pass struct {
	*Loop
	limits Limits
	turn   *Turn
	rec    Recorder
	emit   Emit
	log    func() *slog.Logger // most turns say nothing
	model  llm.Model
	tools  []llm.Tool
	root   *workspace.Root // opened by the first call

	hold    *llm.Hold // of the answer under way, until it is journalled
	conv    conversation
	stream  stream
	asked   int             // model calls of this run that are journalled
	lastN   int             // number of the newest step
	ids     map[string]bool // call ids of this run
	breaker breaker
	round   []*call           // of the last response
	unsaved []workspace.Step  // rows of refused calls that wait for those of their neighbours
	steered []workspace.Entry // waiting for the end of the round
	usage   workspace.Usage
	health  health
	halved  bool // history was left out since the model refused its length
	held    bool // a stop came before the last step: it was not stored
}

// Run implements Runner.
func (l *Loop) Run(ctx context.Context, t Turn, rec Recorder, emit Emit) error {
	if emit == nil {
		emit = func(Event) {}
	}
	log := l.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &pass{
		Loop: l, limits: l.Limits.orDefault(), turn: &t, rec: rec, emit: emit, ids: map[string]bool{}, breaker: newBreaker(),
		health: health{warned: map[string]string{}},
		hold:   &llm.Hold{Budget: l.Budget},
		log:    sync.OnceValue(func() *slog.Logger { return log.With("run", t.Run, "session", t.SessionID, "agent", t.Agent) }),
	}
	if t.Trouble != nil { // an earlier try has told the log
		p.health.warned[t.Trouble.Model] = kindOfTrouble(*t.Trouble)
	}
	defer p.hold.Release()
	if t.MaxSteps <= 0 {
		t.MaxSteps = p.limits.MaxSteps
	}
	out, err := p.guarded(ctx)
	p.close()
	if err != nil {
		if out, err = p.failed(ctx, err); err != nil {
			return err
		}
	}
	out.Usage, out.TooLong = p.usage, p.halved
	if err := rec.Finish(context.WithoutCancel(ctx), out); err != nil {
		return fmt.Errorf("finish run %s: %w", workspace.Short(t.Run), err)
	}
	return nil
}

var errPanic = errors.New("the loop panicked")

// guarded is work that cannot take the process down.
func (p *pass) guarded(ctx context.Context) (out Outcome, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log().Error("turn panicked", "err", fmt.Sprint(r), "stack", string(debug.Stack()))
			out, err = Outcome{}, fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return p.work(ctx)
}

// work asks and acts in turn until there is an answer.
func (p *pass) work(ctx context.Context) (Outcome, error) {
	model, err := p.Models.Chain(p.turn.Models, func(note string) {
		p.event(Event{Type: EventWait, Note: note})
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("%w: %w", errNoModel, err)
	}
	p.model = model
	for _, spec := range p.Tools.For(p.turn.Subject()) {
		p.tools = append(p.tools, llm.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	if err := p.resume(ctx); err != nil {
		return Outcome{}, err
	}
	for p.asked < p.turn.MaxSteps && !p.breaker.spent(p.limits) {
		resp, err := p.answerOrCalls(ctx)
		if err != nil {
			return Outcome{}, err
		}
		if len(resp.ToolCalls()) == 0 {
			return p.answer(resp), nil
		}
		if err := p.plan(ctx, resp); err != nil {
			return Outcome{}, err
		}
		if err := p.act(ctx); err != nil {
			return Outcome{}, err
		}
	}
	return p.summary(ctx)
}

// plan journals the model's whole response with the calls that it wants.
func (p *pass) plan(ctx context.Context, resp llm.Response) error {
	p.asked++
	steps := []workspace.Step{p.modelStep(resp)}
	p.round = nil
	for _, c := range resp.ToolCalls() {
		call := p.newCall(c)
		p.round = append(p.round, call)
		steps = append(steps, call.moved(workspace.StepPlanned))
	}
	p.conv.add(assistantMessage(resp.Content))
	defer p.hold.Release() // the turn goes on to act: its next answer asks again
	return p.step(ctx, false, steps...)
}

// modelStep is the journal's row of a response.
func (p *pass) modelStep(resp llm.Response) workspace.Step {
	p.lastN++
	usage := resp.Usage
	return workspace.Step{
		RunID: p.turn.Run, N: p.lastN, Kind: workspace.StepModel, State: workspace.StepDone, Ended: p.Now(),
		Body: workspace.StepBody{Content: resp.Content, Usage: &usage, Model: resp.Model},
	}
}

// step journals. It does not end with the turn's context: what happened is written down even so.
func (p *pass) step(ctx context.Context, boundary bool, steps ...workspace.Step) error {
	if len(steps) == 0 {
		return nil
	}
	b, err := p.rec.Step(context.WithoutCancel(ctx), boundary, steps...)
	if err != nil {
		return &recordError{err}
	}
	p.steered, p.held = append(p.steered, b.Inputs...), b.Held
	switch {
	case b.Stop:
		return ErrStopped
	case b.Pause:
		return ErrPaused
	}
	return nil
}

// recordError is a step that could not be recorded: nothing may go on, and nothing may be finished.
type recordError struct{ err error }

func (e *recordError) Error() string { return "record a step: " + e.err.Error() }
func (e *recordError) Unwrap() error { return e.err }

func (p *pass) event(e Event) {
	e.Run = p.turn.Run
	p.emit(e)
}

func (p *pass) close() {
	if p.root == nil {
		return
	}
	if err := p.root.Close(); err != nil {
		p.log().Warn("work folder did not close", "err", err)
	}
}
