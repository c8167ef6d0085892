// Package cell is the first process of a sandbox, its init: it builds the walls around itself, locks itself in, starts the one
// command that it is for, reaps what that leaves behind, and says how it ended. It decides nothing: all that it does stands in
// the Spec that the gateway sends it over a socket, and it believes nobody else.
//
// It is not imported for what it offers but for what it does when the program starts: a program that was started under the name
// RoleInit never reaches its main. It takes over while packages are initialised, and it imports so little (nothing that leads to
// package reflect) that the language's order of initialisation puts it before nearly everything else in the program: a
// command would else wait, each time, for the tables of every library that the gateway has. It owns two threads, and then
// the process is the command's.
package cell
