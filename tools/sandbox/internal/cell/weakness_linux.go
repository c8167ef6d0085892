package cell

// Weakness is a set of defences that a launcher does without. The tests of package sandbox build such broken launchers: they
// show that an attempt which is refused succeeds without its defence, so that the refusal is the defence's work.
//
// The program that ships knows none: whatever it is told, Switches.Has is false there by its type. Only the build tag sandboxweak
// gives Switches something to hold.
type Weakness uint64

// The weaknesses, one bit each.
const (
	KeepFDs       Weakness = 1 << iota // inherited file descriptors reach the command
	KeepEnv                            // so does the gateway's environment
	HostRoot                           // the host's file system stays visible
	RWControl                          // the agent's files can be written
	RWSystem                           // so can /usr where its owner may, and what git would run
	HostNet                            // the namespace of the network is the host's
	HostPID                            // that of processes is
	HostIPC                            // that of IPC is
	NoSeccomp                          // system calls are not filtered
	NoLandlock                         // Landlock is not set up
	KeepCaps                           // capabilities are kept
	NoNewPrivOff                       // programs may gain privileges
	Dumpable                           // init can be looked into
	NoProcesses                        // processes are not limited
	NoMemory                           // memory is not
	NoTmpSize                          // /tmp and /dev/shm have no size
	NoDisk                             // what is written is not limited
	NoFiles                            // RLIMIT_NOFILE is not set
	NoNice                             // the command has the gateway's priority
	NoTimeout                          // it may run for ever
	NoReap                             // init stays until the last process has ended by itself
	NoParent                           // init does not end with the gateway
	NoCleanup                          // what a call needs is left behind
	NoCut                              // output is kept whole
	SkipProbe                          // whatever the self-test finds is taken for good
	allWeaknesses = 1<<iota - 1
)
