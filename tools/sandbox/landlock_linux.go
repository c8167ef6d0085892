package sandbox

// landlockSystem is what the weaker tier may read of the host. Without a mount namespace the host's own paths are the ones
// that are seen; /proc is not among them, since it would be the host's.
func landlockSystem() (list []string) {
	for _, d := range systemDirs() {
		list = append(list, "/"+d)
	}
	for _, e := range matching("/etc", etcNames()) {
		list = append(list, "/etc/"+e)
	}
	return append(list, "/etc/passwd", "/etc/group")
}
