// Made from gateway/api/openapi.json by: go test ./gateway/api -run OpenAPI -update

export type Accepted = {
  input_id: string
  run_id: string | null
  session: string
}

export type Account = {
  network: string
  /** the bot's own id there */
  account: string
  user: string
  /** as they call themselves: a label */
  name?: string
  configured: boolean
}

export type Agent = {
  id: string
  name: string
  models: string[]
  default: boolean
  /** Choices are further models that a session of it may be switched to. */
  choices?: string[]
}

export type Applied = {
  revision: string
  changed: string[]
  restart: string[]
  notes: string[]
}

export type Approval = {
  id: string
  short: string
  /** pending, approved, consumed, denied, expired, cancelled, unknown */
  state: string
  tool: string
  /** the whole of what would be done */
  text: string
  args: unknown
  cwd?: string
  env: string[]
  sandbox?: string
  hash: string
  /** that owns it; left out: owners decide */
  domain?: string
  agent: string
  /** key */
  session: string
  /** left out: the caller does not reach the session */
  session_title?: string
  session_id: string
  run_id: string
  call_id: string
  /** the network it was asked from, or local */
  source: string
  requester: string
  requester_name: string
  /** id, role and, in quotes, the name of the requester: what to show */
  asked_by: string
  /** of the requester when it was asked */
  role: string
  created: string
  expires_at: string
  /** what to look at first: a hint, without which it is not harmless */
  dangers: Danger[]
  /** what the caller may answer: once, session, deny; empty: nothing */
  choices: string[]
  /** Allows is what session lets run again in the session, and AllowsSeconds for how long; without them the whole tool, until the session begins again. */
  allows?: string
  allows_s?: number
  decided_at?: string
  decided_by?: string
  decided_by_name?: string
  /** telegram … webchat, api, cli, webhook, command, expiry, message, stop, gateway */
  via?: string
  /** once or session */
  grant?: string
  reason?: string
  external_ref?: string
}

export type Asked = {
  /** as configured */
  model: string
  /** what people call who is asked */
  provider: string
  /** since when */
  time: string
}

export type AuditCheck = {
  ok: boolean
  rows: number
  /** the last row of each chain: keep one elsewhere to notice a cut */
  heads: AuditHead[]
  /** the first row that is wrong */
  bad?: AuditFault
  /** no newest row was noted in audit.head: nothing tells whether the end was cut off */
  unwitnessed?: boolean
}

export type AuditFault = {
  chain: string
  n: number
  why: string
}

export type AuditHead = {
  chain: string
  n: number
  hash: string
}

export type AuditItem = {
  /** from 1, without a gap */
  n: number
  time: string
  kind: string
  /** a person's id; left out: the gateway itself */
  actor?: string
  actor_name?: string
  /** the actor's id and, in quotes, the name: what to show */
  by?: string
  /** the surface */
  via?: string
  what: Record<string, unknown>
  chain: string
  /** hash of the row before; empty: the first */
  prev: string
  /** hex SHA-256 of prev, a line feed, and body */
  hash: string
  /** RFC 8785 JSON */
  body: string
}

export type Channel = {
  name: string
  type: string
  account?: string
  state: string
  since: string
  cause?: string
  hint?: string
}

export type ChannelField = {
  /** in the configuration */
  key: string
  title: string
  secret: boolean
  needed: boolean
  help: string
  /** what one looks like */
  placeholder: string
}

export type ChannelKind = {
  /** of its channels in the configuration */
  type: string
  title: string
  /** what its channel is called, when nobody says otherwise */
  name: string
  /** Markdown */
  steps: string[]
  links: ChannelLink[]
  fields: ChannelField[]
  /** Markdown: once it is configured */
  after: string[]
  /** linked by a code: POST /v1/channels/{name}/login */
  qr: boolean
  /** Manifest is what to paste where the network wants a description of the app first. */
  manifest?: string
}

export type ChannelLink = {
  title: string
  url: string
}

export type Checked = {
  ok: boolean
  problems: ConfigProblem[]
  changed: string[]
  guarded: string[]
  restart: string[]
}

export type Code = {
  code: string
  /** behind the gateway's address */
  path: string
  /** the whole link, for a browser elsewhere */
  public_url?: string
  expires: string
}

export type CodeRequest = {
  /** from the link that the gateway prints */
  code: string
}

export type Command = {
  /** without the slash */
  name: string
  aliases: string[]
  /** what may follow, as help shows it */
  args: string
  help: string
  example: string
}

export type Config = {
  /** the file; empty: there is none, all is default */
  path: string
  /** when what is in force was taken */
  since: string
  /** why what the file holds now is not in force; empty: it is */
  problem?: string
  /** when that was found */
  problem_at?: string
  /** keys whose change waits for a restart */
  waits?: string[]
  yaml: string
  /** the same, parsed */
  values: unknown
}

export type ConfigFile = {
  /** the file; empty: there is none, all is default */
  path: string
  /** when what is in force was taken */
  since: string
  /** why what the file holds now is not in force; empty: it is */
  problem?: string
  /** when that was found */
  problem_at?: string
  /** keys whose change waits for a restart */
  waits?: string[]
}

export type ConfigProblem = {
  line: number
  column: number
  key?: string
  message: string
}

export type ConfigText = {
  path: string
  exists: boolean
  text: string
  revision: string
  masked: string[]
  overridden: string[]
  problems: ConfigProblem[]
}

export type Danger = {
  /** pipe, remove, outside, network, root, rights, disk, machine, environment, computed, bomb … */
  kind: string
  /** the piece */
  what?: string
  /** what it does: "removes folders with all that is in them" */
  why: string
}

export type Decision = {
  /** once, session or deny */
  decision: string
  /** of a no: the model is told it */
  reason?: string
  /** ExternalRef is what a domain's own system calls it; only that may send it. */
  external_ref?: string
}

export type Delta = {
  item_id: string
  part: number
  offset: number
  text: string
}

export type Done = {
  status: string
}

export type EndData = {
  state: string
  reason?: string
}

export type ErrorData = {
  code: string
  message?: string
}

export type Event = {
  event_id: string
  sequence: number
  time: string
  session_id: string
  run_id: string | null
  /** agent or daemon */
  source: string
  synthetic: boolean
  type: string
  /** by type; of turn.started it is empty */
  data: ItemData | Delta | EndData | ErrorData | SessionData | Record<string, never>
}

export type Explained = {
  outcome: string
  role?: string
  /** of the gate */
  rule: string
  gates: string[]
  reason?: string
  agent: string
  session: string
  route: string
  /** the default agent, not an assignment */
  fallback: boolean
  fanout?: string[]
  rules: Tried[]
}

export type Failing = {
  run_id: string
  /** key */
  session: string
  state: string
  /** the beginning of what it was asked */
  said: string
  started: string
  ended?: string
  trouble: Trouble
}

export type File = {
  ref: string
  /** made safe */
  name: string
  /** by its bytes */
  mime: string
  size: number
}

export type FileRequest = {
  ref: string
}

export type FilesRemoved = {
  path: string
  /** files and folders */
  removed: number
  /** false: the store takes nothing, so that only the daemon's log tells of it until it does */
  audited: boolean
  /** what the work folder holds now */
  left: WorkFiles
}

export type Finding = {
  ok: boolean
  /** it works, and is probably not what was meant */
  warn?: boolean
  /** nothing is wrong, and something is to be done before Parley is of use */
  todo?: boolean
  what: string
  /** what to do */
  hint?: string
}

export type Generation = {
  session_id: string
  generation: number
  created: string
  /** left out: the present one */
  ended?: string
  /** of its newest event */
  sequence: number
  preview: string
  usage: Usage
  /** ForkedFrom is the generation that this one parted from, before its event ForkedBefore; left out: it began with nothing. */
  forked_from?: string
  forked_before?: number
}

export type Grant = {
  /** of the approval that it came with */
  id: string
  short: string
  tool: string
  /** what runs, in words: git status … */
  allows: string
  /** of a command, as it was found */
  program?: string
  agent: string
  /** key */
  session: string
  /** its network, or local */
  source: string
  asked_by: string
  decided_at: string
  decided_by_name: string
  via?: string
  /** left out: until the session begins again */
  until?: string
}

export type Hold = {
  by?: string
}

export type Item = {
  id: string
  type: string
  role?: string
  /** of the speaker or the tool */
  name?: string
  parts?: Part[]
  /** what others said before, as data */
  quoted?: Part[]
  /** of system: the line that was answered */
  command?: string
  reason?: string
  /** cut by a stop */
  partial?: boolean
  /** Trouble is, of a status, the failure of a model that is behind it. */
  trouble?: Trouble
}

export type ItemData = {
  item: Item
}

export type LogItem = {
  /** from 1 since the start */
  n: number
  time: string
  /** DEBUG, INFO, WARN, ERROR */
  level: string
  message: string
  attrs: Record<string, string>
}

export type LogLine = {
  /** from 0 */
  n: number
  time: string
  /** turn.started, message, tool_call, tool_result, error, turn.ended … */
  type: string
  role?: string
  /** of the tool */
  name?: string
  text?: string
}

export type Login = {
  channel: string
  /** none, waiting, linked or failed */
  state: string
  /** grows with every change */
  step: number
  /** what the code to scan holds */
  qr?: string
  /** the same as a picture: a data URL of a PNG */
  image?: string
  /** to type on the phone */
  code?: string
  /** what to do, or what happened */
  note?: string
  /** when the next code comes, RFC 3339 */
  expires?: string
  /** why it failed */
  error?: string
}

export type Match = {
  type?: string
  channel?: string
  server?: string
  roles?: string[]
  team?: string
  kind?: string
  peer?: string
  thread?: string
}

export type Me = {
  person: Person
  version: string
  /** counts the starts of this gateway */
  boot: number
  agents: Agent[]
}

export type MessageRequest = {
  /** by id; left out: the default agent */
  agent?: string
  /** a name, or a whole key; left out: main */
  session?: string
  text: string
  /** that were uploaded, at most 10 */
  files?: FileRequest[]
  /** seconds until the answer comes without the end of the turn, at most 600 */
  wait?: number
}

export type Model = {
  name: string
  model: string
  /** the built-in responder: no model at all */
  offline: boolean
  down: boolean
  /** in a row */
  failures: number
  last_error?: string
  next_probe?: string
}

export type ModelChoice = {
  /** its number in the list, from 1 */
  n: number
  /** as the configuration calls it */
  name: string
  /** as its provider calls it */
  model: string
  /** by name; left out: it is not a known one */
  provider?: string
  /** it is asked first */
  current: boolean
  /** the agent's own */
  default: boolean
  /** tokens; 0: unknown */
  context_window: number
  /** whether it is told how hard to think: yes, no; left out: its server decides */
  thinks?: string
  /** the built-in responder */
  offline?: boolean
  /** it has failed, and is passed over for a moment */
  down?: boolean
  /** its last failure; owners only */
  error?: string
}

export type ModelTrouble = {
  sentence: string
  code: string
  provider: string
  status?: number
}

export type ModelTry = {
  ok: boolean
  trouble?: ModelTrouble
  provider: string
  api: string
  /** as it works: with its /v1 where that was left out */
  base_url: string
  models: ServedModel[]
  /** the model to take first */
  suggested?: string
  /** what the model took that was asked */
  answered_ms?: number
}

export type ModelsView = {
  items: ModelChoice[]
  /** in the order in which they are asked */
  chain: string[]
  /** that somebody chose for this session; left out: the agent's own is asked */
  chosen?: string
  /** the chosen one is configured no more: it is passed over */
  gone?: boolean
  /** how hard it thinks; left out: the model's own */
  think?: string
  /** what think may be; empty: the model has no such thing */
  efforts: string[]
  /** the caller may choose */
  may_change: boolean
  /** a turn runs that is being answered: what is changed holds from the next */
  running: boolean
  /** a turn waits for its model: it goes on with what is changed, at once */
  anew?: boolean
}

export type Output = {
  /** of the call */
  item_id: string
  /** the last lines */
  text: string
  /** that were ended so far */
  lines: number
}

export type Pairing = {
  id: string
  short: string
  channel: string
  type: string
  user: string
  /** as they call themselves: a label */
  name?: string
  /** the network, its id of the sender and, in quotes, the name: what to show */
  asked_by: string
  state: string
  requested: string
  decided?: string
  decided_by?: string
  /** whom an approval made */
  person?: string
  role?: string
}

export type Part = {
  type: string
  text?: string
  name?: string
  call_id?: string
  args?: unknown
  error?: boolean
  mime?: string
  blob?: string
  /** bytes of the file */
  size?: number
}

export type Paused = {
  run_id: string
  state: string
  /** Pausing says that it pauses at its next step, or once it has an answer that it waits for. */
  pausing: boolean
}

export type Permission = {
  id: string
  short: string
  call_id: string
  tool: string
  domain?: string
  state: string
  /** of a question: the whole of it */
  text?: string
  grants?: string[]
  /** of a command: what the answer session lets run again */
  allows?: string
  expires_at?: string
  decided_by?: string
  via?: string
  grant?: string
  reason?: string
}

export type Person = {
  id: string
  role: string
  name: string
}

export type PersonItem = {
  id: string
  name: string
  role: string
  tz?: string
  /** named in the configuration, which rules */
  configured: boolean
  created?: string
  accounts: Account[]
}

export type PolicyDecision = {
  /** allow, ask, deny */
  outcome: string
  /** whose owner is asked */
  domain?: string
  /** that decided */
  layer?: string
  rule?: string
  reason?: string
  /** what each layer said, in order */
  record: PolicyLayer[]
}

export type PolicyExplained = {
  agent: string
  person?: string
  role: string
  channel?: string
  network?: string
  route?: string
  helper?: boolean
  /** in the order in which they judge */
  layers: string[]
  tools: PolicyTool[]
}

export type PolicyLayer = {
  layer: string
  rule: string
  outcome: string
  reason?: string
}

export type PolicyTool = {
  tool: string
  group?: string
  /** pure, store, outside: what a crash may repeat */
  effect?: string
  /** allow, ask, deny */
  outcome: string
  /** whose owner is asked */
  domain?: string
  /** that decided */
  layer?: string
  rule?: string
  reason?: string
  /** what each layer said, in order */
  record: PolicyLayer[]
}

export type Problem = {
  type: string
  title: string
  status: number
  detail?: string
  /** Approval is what a question came to that had been answered before. */
  approval?: Approval
  /** Problems are what is wrong with a text, one by one. */
  problems?: unknown
}

export type Provider = {
  id: string
  name: string
  api: string
  base_url: string
  example?: string
  local: boolean
  needs_key: boolean
  key_url?: string
  key_hint?: string
  note?: string
  env?: string
  model: string
  context_window: number
}

export type Retried = {
  /** that was tried again */
  run_id: string
  /** State is running: the model of its turn is asked again now; or queued: what it was asked is asked again, by a run of its own. */
  state: string
  /** of the message that asks again */
  input_id?: string
}

export type Route = {
  /** 1 is asked first */
  precedence: number
  /** position in the configuration, from 1 */
  n?: number
  /** as bindings name it */
  rule: string
  match: Match
  agent: string
  /** a named one beside the room's first */
  session?: string
  /** Fanout are further agents, each of which gets a copy. */
  fanout?: string[]
  /** the default agent, where no rule matches: no assignment */
  fallback: boolean
}

export type Run = {
  id: string
  run_id?: string
  input_id?: string
  session: string
  state: string
  reason?: string
  text: string
  model?: string
  requester?: string
  started?: string
  ended?: string
  tries?: number
  inputs: string[]
  usage: Usage
  log?: LogLine[]
  /** Trouble is what a model fails the run with now, or failed it with at its end. */
  trouble?: Trouble
}

export type RunDecision = {
  allow: boolean
  rule: string
  /** those passed, in order */
  gates: string[]
  reason?: string
}

export type RunDetail = {
  id: string
  run_id?: string
  input_id?: string
  session: string
  state: string
  reason?: string
  text: string
  model?: string
  requester?: string
  started?: string
  ended?: string
  tries?: number
  inputs: string[]
  usage: Usage
  log?: LogLine[]
  /** Trouble is what a model fails the run with now, or failed it with at its end. */
  trouble?: Trouble
  agent: string
  /** left out: the caller does not reach the session */
  session_title?: string
  generation?: number
  /** the network, or local */
  source: string
  requester_name: string
  /** id, role and, in quotes, the name of the requester: what to show */
  asked_by: string
  role: string
  /** for the operator */
  error?: string
  task_id?: string
  parent_run?: string
  /** that it asked for, oldest first */
  approvals: Approval[]
  /** delivered, not_delivered, unknown, not_requested */
  delivery: string
  messages: RunMessage[]
  steps: RunStep[]
  timeline: RunMoment[]
}

export type RunItem = {
  id: string
  agent: string
  /** key */
  session: string
  session_title: string
  session_id: string
  generation: number
  /** the network, or local */
  source: string
  requester: string
  requester_name: string
  /** id, role and, in quotes, the name of the requester: what to show */
  asked_by: string
  role: string
  state: string
  reason?: string
  model?: string
  /** the beginning of what it was asked */
  said: string
  started: string
  ended?: string
  tries: number
  task_id?: string
  parent_run?: string
  usage: Usage
}

export type RunMessage = {
  id: string
  source: string
  channel?: string
  person: string
  /** a label */
  sender: string
  asked_by: string
  role: string
  text: string
  state: string
  reason?: string
  received: string
  decision: RunDecision
  route: RunRoute
}

export type RunMoment = {
  time: string
  /** received, started, model, tool, trouble, ended */
  type: string
  name?: string
  text?: string
  duration_ms: number
  /** its number in steps */
  step?: number
}

export type RunRoute = {
  agent: string
  session: string
  rule: string
  /** the default agent, where no rule matched */
  fallback: boolean
}

export type RunStep = {
  n: number
  /** model or tool */
  kind: string
  /** done; of a tool also planned, started, failed, unknown, refused, cancelled; of the last call the end of its run */
  state: string
  model?: string
  tool?: string
  call_id?: string
  /** pure, store, outside: what a crash may repeat */
  effect?: string
  /** of a tool: allowed, refused, waiting, cancelled */
  decision?: string
  /** of a tool: what each layer of its policy said */
  policy?: PolicyDecision
  /** of a refusal: layer and rule */
  reason?: string
  /** of a command: what it ran in */
  sandbox?: string
  /** JSON as the model wrote it */
  args?: string
  /** what the model said, or the tool's result */
  text?: string
  /** Args or Text is longer; the log has it whole */
  cut: boolean
  /** the tool's result is an error */
  failed: boolean
  started: string
  ended?: string
  duration_ms: number
  /** of a model's call */
  usage?: Usage
}

export type ServedModel = {
  id: string
  context_window?: number
}

export type Session = {
  key: string
  /** of the generation */
  session_id: string
  generation: number
  generations: number
  agent: string
  /** the title to show */
  name: string
  /** that a person gave it */
  given?: string
  /** of WebChat, the terminal or the API */
  local: boolean
  /** configured name */
  channel?: string
  network?: string
  /** dm, group, room */
  kind?: string
  peer?: string
  thread?: string
  /** whose it is; left out: several people's, or nobody known */
  person?: string
  /** of its newest event */
  sequence: number
  preview: string
  created: string
  updated: string
  /** idle, running, waiting for a person, paused */
  state: string
  running: boolean
  /** messages behind the running turn */
  waiting: number
  /** the caller has not seen its newest event */
  unread: boolean
  /** that it asks first */
  model?: string
  /** how hard it thinks; left out: the model's own */
  think?: string
  usage: Usage
}

export type SessionData = {
  key: string
  generation: number
}

export type Status = {
  agent: Agent
  session: string
  generation: number
  entries: number
  /** idle, running, waiting for a person, paused */
  state: string
  running: boolean
  waiting: number
  queue: string
  health: string
  reason?: string
  uptime_seconds: number
  models: Model[]
  channels: Channel[]
  /** Config is for owners. */
  config?: ConfigFile
}

export type Stopped = {
  run?: string
  queued: number
  parts: number
  /** Summary says that one was being made for /compact. */
  summary?: boolean
}

export type StoppedAll = {
  sessions: number
  runs: number
  queued: number
  parts: number
}

export type Tested = {
  channel: string
  ok: boolean
  findings: Finding[]
}

export type Tried = {
  /** position in the configuration, from 1 */
  n: number
  rule: string
  agent: string
  matched: boolean
  /** of a rule that did not match */
  why?: string
}

export type Trouble = {
  model: string
  /** overload, limited, timed_out, cut, malformed, auth, rejected … */
  kind: string
  /** of HTTP; absent: there was no answer */
  status?: number
  /** by name; absent: it is not a known one */
  provider?: string
  /** the server's words, cut */
  message?: string
  /** all of it in words */
  cause: string
  /** the cause, and what is waited for */
  sentence: string
  /** of all models of the chain, in a row */
  failures?: number
  time: string
  next_try?: string
  /** the server asked for this wait */
  stated?: boolean
}

export type Undelivered = {
  id: string
  short: string
  /** of its first undelivered part */
  state: string
  error?: string
  /** network:account:kind:peer */
  room: string
  title?: string
  kind: string
  run_id?: string
  text: string
  /** all of it */
  parts: number
  /** of them */
  sent: number
  /** of the undelivered part */
  tries: number
  created: string
}

export type Usage = {
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** null: a model without a known price was asked */
  totalCostUsd: number | null
  durationMs: number
}

export type UsageItem = {
  /** the day as 2006-01-02, or an id */
  key: string
  /** of the agent or person */
  name?: string
  runs: number
  failed: number
  /** runs with a model whose price is not known */
  unpriced: number
  /** of the runs that are priced */
  knownCostUsd: number
  usage: Usage
}

export type UsageSum = {
  by: string
  /** the first day */
  from: string
  /** the last one */
  to: string
  items: UsageItem[]
  /** null: a sum has one page */
  next: string | null
  total: UsageItem
}

export type WorkFile = {
  /** relative to the work folder */
  path: string
  folder: boolean
  bytes: number
  /** in a folder */
  files: number
  /** false: no path can name it, so that it goes with the folder that it is in */
  removable: boolean
}

export type WorkFiles = {
  session: string
  /** the folder that is looked at, relative to the work folder; "." is all of it */
  path: string
  /** in the work folder: blocks on the disk, and 4 KiB for each file and folder */
  bytes: number
  /** and folders, in the work folder */
  files: number
  max_bytes: number
  max_files: number
  /** there is more than was counted */
  more?: boolean
  /** directly in the folder, the largest first, at most 20 */
  items: WorkFile[]
  /** files anywhere in the folder, the largest first, at most 20 */
  largest: WorkFile[]
  /** owners' folders that are shown in it: neither counted nor removed here */
  mounted: string[]
  /** other sessions work in this folder too */
  shared: boolean
  /** bytes; 0: not known */
  disk_free: number
  /** bytes that stay free: below them nothing is written */
  disk_kept: number
  /** nothing is written at the moment */
  disk_low: boolean
}
