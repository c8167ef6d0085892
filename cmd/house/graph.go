package main

// graph is a directed graph over the numbers below its size.
type graph struct{ out []map[int]bool }

func newGraph(n int) *graph {
	g := &graph{out: make([]map[int]bool, n)}
	for i := range g.out {
		g.out[i] = map[int]bool{}
	}
	return g
}

func (g *graph) add(from, to int) { g.out[from][to] = true }

func (g *graph) arrows() (n int) {
	for _, to := range g.out {
		n += len(to)
	}
	return n
}

// components are the strongly connected components (Tarjan).
func (g *graph) components() (all [][]int) {
	index, low, on := make([]int, len(g.out)), make([]int, len(g.out)), make([]bool, len(g.out))
	var stack []int
	next := 1
	var visit func(v int)
	visit = func(v int) {
		index[v], low[v] = next, next
		next++
		stack, on[v] = append(stack, v), true
		for w := range g.out[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if on[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		var group []int
		for w := -1; w != v; {
			w = stack[len(stack)-1]
			stack, on[w] = stack[:len(stack)-1], false
			group = append(group, w)
		}
		all = append(all, group)
	}
	for v := range g.out {
		if index[v] == 0 {
			visit(v)
		}
	}
	return all
}

// backArrows is how many arrows run back up when the nodes are laid out from the top down so that few do. Finding the fewest is
// hard; the order is the greedy one of Eades, Lin and Smyth: what nobody needs goes to the top, what needs nobody to the ground,
// else the node that has the most arrows down for those up.
func (g *graph) backArrows() (back int) {
	place := make([]int, len(g.out))
	for i, v := range g.order() {
		place[v] = i
	}
	for from, to := range g.out {
		for v := range to {
			if place[v] < place[from] {
				back++
			}
		}
	}
	return back
}

func (g *graph) order() []int {
	n := len(g.out)
	in, out, gone := make([]int, n), make([]int, n), make([]bool, n)
	into := make([][]int, n)
	for v, to := range g.out {
		out[v] = len(to)
		for w := range to {
			in[w]++
			into[w] = append(into[w], v)
		}
	}
	top, ground := make([]int, 0, n), make([]int, 0, n)
	take := func(v int, list *[]int) {
		*list, gone[v] = append(*list, v), true
		for w := range g.out[v] {
			in[w]--
		}
		for _, w := range into[v] {
			out[w]--
		}
	}
	for len(top)+len(ground) < n {
		best := -1
		for v := range n {
			switch {
			case gone[v]:
			case out[v] == 0:
				take(v, &ground)
			case in[v] == 0:
				take(v, &top)
			case best < 0 || out[v]-in[v] > out[best]-in[best]:
				best = v
			}
		}
		if best >= 0 && !gone[best] {
			take(best, &top)
		}
	}
	for i := len(ground) - 1; i >= 0; i-- {
		top = append(top, ground[i])
	}
	return top
}
