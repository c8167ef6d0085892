//go:build sandboxweak

package main

// With the tag sandboxweak a sandbox can be told to do without its defences, for tests alone. Parley is not built so: this does
// not compile.
const _ = parleyIsNotBuiltWithTheTagSandboxweak
