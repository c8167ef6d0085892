// Command house prints the shape of this module: for each package its files and lines, what imports it and what it imports,
// the largest group of its files that all need one another, the arrows between its files that run back up, its widest struct
// and interface. `house gateway/...` prints the packages that fit, and one sum for them as if they were one package.
//
// It reads the code that the compiler reads, without tests. The limits that must hold stand in house_test.go.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, args []string) error {
	pattern := "..."
	if len(args) > 0 {
		pattern = args[0]
	}
	all, err := load(".")
	if err != nil {
		return err
	}
	var shown []*pkg
	for _, p := range all {
		if len(p.files) > 0 && fits(pattern, p.path) {
			shown = append(shown, p)
		}
	}
	if len(shown) == 0 {
		return fmt.Errorf("no package fits %q", pattern)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "package\tfiles\tlines\tin\tout\tarrows\tback\tcomponent\tlines\tstruct\tinterface\tmethods\tlong lines")
	for _, p := range shown {
		f := measure(p)
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%d\n", p.path, f.files, f.lines, p.in, p.out,
			f.arrows, f.back, f.component, f.componentLines, f.widestStruct, f.widestInterface, f.mostMethods, f.longLines)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(shown) > 1 {
		s := sum(shown)
		fmt.Fprintf(w, "\n%s: %d packages, %d files, %d lines; ", pattern, len(shown), s.files, s.lines)
		fmt.Fprintf(w, "%d arrows between files, %d of them run back up; largest component %d files, %d lines\n",
			s.arrows, s.back, s.component, s.componentLines)
	}
	return nil
}

// fits matches a path as the go command's patterns do: "gateway/..." is gateway and all below it.
func fits(pattern, path string) bool {
	if above, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(path+"/", strings.TrimPrefix(above, "./"))
	}
	return strings.TrimPrefix(pattern, "./") == path
}
