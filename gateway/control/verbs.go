package control

// Verbs are the verbs of this package, as values. Wiring hands them to Control and to the surfaces.
func Verbs() []Any {
	return []Any{
		ListPairings, ApprovePairing, DenyPairing,
		ListPeople, ShowPerson,
		ListUndelivered, RetryUndelivered, DropUndelivered,
		SumUsage,
		ListFolders, AcceptHeld,
		ListSessions, ShowSession, CreateSession, RenameSession, DeleteSession, ForkSession, ListGenerations,
		ListRuns, StopRun, StopAll, PauseRun, ResumeRun,
		ListAudit, VerifyAudit,
		ListChannels, ShowChannel, TestChannel, LoginChannel, CancelLogin, LogoutChannel,
		ListRoutes, ListAgents, ShowConfig, ReloadConfig,
	}
}
