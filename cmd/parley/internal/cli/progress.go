// What is said while something takes long.

package cli

import (
	"fmt"
	"time"
)

// quietFor is how long something may take before progress is shown.
const quietFor = time.Second

// Progress says on standard error what is waited for, once it takes long: on a terminal with the seconds, else once. The
// function that it returns ends that, and waits for its goroutine.
func (a *App) Progress(what string) (done func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	live := isTerminal(a.Errs)
	go func() { // ends with quit
		defer close(ended)
		tick := time.NewTicker(quietFor)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-quit:
				if live && n > 1 {
					fmt.Fprint(a.Errs, "\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			switch {
			case live:
				fmt.Fprintf(a.Errs, "\r\x1b[K%s", Paint(a.Errs, Dim, fmt.Sprintf("… %s, %s", what, time.Duration(n)*quietFor)))
			case n == 1:
				fmt.Fprintf(a.Errs, "… %s\n", what)
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// UnderWay says now and then that something slow goes on.
func (a *App) UnderWay(what string) (done func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(10 * time.Second)
		defer t.Stop()
		for began := time.Now(); ; {
			select {
			case <-quit:
				return
			case <-t.C:
				fmt.Fprintf(a.Errs, "%s is still being made (%s)\n", what, time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}
