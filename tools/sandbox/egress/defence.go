package egress

// defence is a set of what the proxy checks. The tests take one away to show that it is needed; the program that ships has no
// way to: off holds something only with the build tag sandboxweak.
type defence uint16

const (
	checkBytes        defence = 1 << iota // of a request's head
	checkUserinfo                         // that there is none before the host
	checkLiteral                          // that the host is a name
	checkASCII                            // that no letter only looks like one
	checkHost                             // that Host is the target
	checkSuffix                           // that a name below a listed one ends in its dot and all
	checkPort                             // that it is the listed one
	checkList                             // that the target is on the list
	checkAddress                          // that it is public
	checkOwn                              // that it is not this machine's
	pinAddress                            // dial what was checked
	checkBeforeLookup                     // look up no name that is refused
	boundConnections                      // serve so many at once and no more
)
