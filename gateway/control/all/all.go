// Package all is the explicit list of the verbs that are values, and of the nouns that do them. It is what surfaces are given.
package all

import (
	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/control/config"
	"parley/gateway/control/conversation"
	"parley/gateway/control/file"
	"parley/gateway/control/operator"
	"parley/gateway/control/outbound"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
)

// Verbs are those of all nouns that are values.
func Verbs() []control.Any {
	return []control.Any{
		person.ListPairings, person.ApprovePairing, person.DenyPairing, person.List, person.Show,
		person.WhoAmI, person.Me, person.AskLink, person.Link,
		outbound.List, outbound.Retry, outbound.Drop,
		file.Show, file.Remove, file.ListFolders, file.AcceptHeld,
		session.Current, session.List, session.New, session.Switch, session.Rename, session.Export,
		session.Show, session.Create, session.Delete, session.Fork, session.ListGenerations,
		session.ListEntries, session.MarkRead,
		conversation.ShowStatus, conversation.SayStatus, conversation.Context,
		conversation.New, conversation.Reset, conversation.Resume, conversation.Retry, conversation.Undo, conversation.Compact,
		conversation.Models, conversation.SetModel, conversation.SessionModels, conversation.AgentModels, conversation.Choose,
		conversation.RetryRun,
		conversation.ShowQueue, conversation.SetQueue,
		conversation.ShowThink, conversation.SetThink, conversation.ShowVerbose, conversation.SetVerbose,
		conversation.ShowReasoning, conversation.SetReasoning, conversation.ShowUsage, conversation.SetUsage,
		conversation.ShowSend, conversation.SetSend, conversation.ShowActivation, conversation.SetActivation,
		approval.List, approval.Show, approval.ListGrants, approval.Revoke, approval.Decide, approval.Press,
		run.List, run.ListFailing, run.Show, run.Log, run.StopTurn, run.Stop, run.StopAll, run.Why, run.Pause, run.Resume,
		operator.SumUsage, operator.ListAudit, operator.VerifyAudit,
		operator.ListChannels, operator.ShowChannel, operator.TestChannel,
		operator.ListKinds, operator.LoginChannel, operator.CancelLogin, operator.LogoutChannel,
		operator.ListRoutes, operator.ExplainRoute, operator.ExplainPolicy, operator.ListAgents,
		operator.ListProviders, operator.TryModel,
		operator.ShowConfig, operator.ReloadConfig, operator.ListLog,
		config.ShowFile, config.Check, config.Write, config.Change,
	}
}

// Nouns are all nouns over one kernel. All fields are needed.
type Nouns struct {
	*control.Kernel
	Answers       *control.Answers
	Conversations *conversation.Conversations
	Sessions      *session.Sessions
	Runs          *run.Runs
	Approvals     *approval.Approvals
	People        *person.People
	Files         *file.Files
	Outbound      *outbound.Outbound
	Operator      *operator.Operator
	Config        *config.Config
}

// List is those whose verbs are values.
func (n *Nouns) List() []control.Noun {
	return []control.Noun{n.Conversations, n.Sessions, n.Runs, n.Approvals, n.People, n.Files, n.Outbound, n.Operator, n.Config}
}
