// Package attachment brings files and recordings that came with messages into the blob store and the session's work folder,
// when a turn takes the messages up. Pictures are made small, recordings transcribed.
package attachment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/media"
)

// Limits of what is fetched.
const (
	maxAttachment  = 20 << 20  // bytes of one file: what Telegram gives to bots
	maxAttachments = 10        // of one message
	maxDay         = 500 << 20 // bytes of one person in a day, UTC; owners have no such bound
	fetchesAtOnce  = 8         // over all sessions
	fetchesOfTurn  = 4
	fetchTries     = 3
)

// Fetcher brings what is attached to messages: into the blob store, where it stays, and as a copy into the session's
// work folder. It is asked when a turn takes a message up and before that is committed, so that a crash at any point
// finds the message still queued and what was fetched already in its place; and never for a message that was refused.
// Goroutines: a few for each turn with attachments, waited for.
type Fetcher struct {
	blobs    *blob.Store
	channels *transport.Channels
	store    Store
	log      *slog.Logger

	timeout time.Duration // of one try
	patient time.Duration // of all files of a turn together
	pause   time.Duration // before the second try, and twice that before the third
	slots   chan struct{}
	looking sync.Mutex // one picture is decoded at a time: each may take a lot of memory
	keeping sync.Mutex // copies into work folders
	now     func() time.Time

	mu    sync.Mutex
	day   int64 // since 1970
	spent map[workspace.PersonID]int64
}

// Options of a Fetcher. All are needed.
type Options struct {
	Blobs    *blob.Store
	Channels *transport.Channels
	Store    Store
	Log      *slog.Logger
	Now      func() time.Time
}

// Store is the units that are used.
type Store interface {
	InputByKey(source, account, key string) (workspace.Input, error)
	// Hear keeps what was heard with its message, and gives what was kept first.
	Hear(in workspace.InputID, n int, text string) (string, error)
}

// New does no IO.
func New(o Options) *Fetcher {
	return &Fetcher{blobs: o.Blobs, channels: o.Channels, store: o.Store, log: o.Log, now: o.Now, timeout: 45 * time.Second, patient: 2 * time.Minute,
		pause: time.Second, slots: make(chan struct{}, fetchesAtOnce)}
}

// Carries says that something must be fetched before a turn can take the message up.
func Carries(d *workspace.InputData) bool {
	return len(d.Attachments) > 0 || d.Quote != nil && len(d.Quote.Attachments) > 0 && !d.Quote.Own
}

// AnyCarries is Carries of any input.
func AnyCarries(inputs []workspace.Input) bool {
	for i := range inputs {
		if Carries(&inputs[i].Data) {
			return true
		}
	}
	return false
}

// Batch is the files of the inputs that a turn takes at once.
type Batch struct {
	WorkDir string
	Hear    Transcriber // nil: nothing is configured that can
	Newest  int         // number of the newest picture of the session
	Inputs  []workspace.Input
}

// Fetched is what became of them.
type Fetched struct {
	Content map[workspace.InputID][]workspace.Content
	Notices []Notice
}

// Notice is a sentence for the person. Its key keeps it from being said twice.
type Notice struct {
	Key  string // empty: by its input
	In   workspace.Input
	Text string
}

// item is one file on its way.
type item struct {
	in      workspace.Input
	a       channels.Attachment
	quoted  bool
	n       int // of its message
	content workspace.Content
	said    string // transcript
	trouble string // why it is not there, for people
	unheard string // why a recording is not transcribed
	unasked bool   // nothing is configured that could
}

// Fetch never fails: what cannot be had is said in the content and in a notice. When ctx ends it returns early, and the
// caller must not use what it returned.
func (f *Fetcher) Fetch(ctx context.Context, b Batch) Fetched {
	if !AnyCarries(b.Inputs) {
		return Fetched{}
	}
	items := f.items(b.Inputs)
	wait, cancel := context.WithTimeout(ctx, f.patient)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(fetchesOfTurn)
	for _, it := range items {
		g.Go(func() error {
			f.one(wait, b, it)
			return nil
		})
	}
	_ = g.Wait() // nothing in it fails
	return f.told(b, items)
}

// items lists the files of the inputs in order. Of an edit only those that its message did not have.
func (f *Fetcher) items(inputs []workspace.Input) []*item {
	var out []*item
	for _, in := range inputs {
		if !Carries(&in.Data) || f.known(in) {
			continue
		}
		n := 0
		add := func(list []channels.Attachment, quoted bool) {
			for _, a := range list {
				out = append(out, &item{in: in, a: a, quoted: quoted, n: n})
				n++
			}
		}
		add(in.Data.Attachments, false)
		if q := in.Data.Quote; q != nil && !q.Own {
			add(q.Attachments, true)
		}
	}
	return out
}

// known says that an edit brings nothing but the files which a turn has already been shown with the message.
func (f *Fetcher) known(in workspace.Input) bool {
	if in.Kind != channels.KindEdit || in.TargetKey == "" {
		return false
	}
	target, err := f.store.InputByKey(in.Source, in.Account, in.TargetKey)
	if err != nil || target.RunID == "" {
		return false
	}
	return slices.EqualFunc(target.Data.Attachments, in.Data.Attachments, func(a, b channels.Attachment) bool {
		return a.ID == b.ID || a.Kind == b.Kind && a.Name == b.Name && a.Size == b.Size && a.Size > 0
	})
}

// one fetches a file and looks at it. A panic in it is that file's trouble alone.
func (f *Fetcher) one(ctx context.Context, b Batch, it *item) {
	defer func() {
		if p := recover(); p != nil {
			f.log.Error("panic", "in", "fetch", "input", it.in.ID, "panic", p)
			it.trouble = "something went wrong with it"
		}
	}()
	if it.n >= maxAttachments {
		it.trouble = fmt.Sprintf("only the first %d files of a message are taken", maxAttachments)
		return
	}
	if !f.spend(it.in, it.a.Size) {
		it.trouble = fmt.Sprintf("that would be more than the %d MB a day that I take of one person", maxDay>>20)
		return
	}
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		it.trouble = "it took too long"
		return
	}
	kept, err := f.take(ctx, it)
	<-f.slots
	f.settle(it.in, kept.Size-it.a.Size) // of a failure nothing is left
	if err != nil {
		it.trouble = f.reason(it, err)
		return
	}
	mime := media.Type(kept.Head)
	it.content = workspace.Content{Kind: workspace.FileRef, Name: media.Name(it.a.Name, stem(it.a.Kind), mime), MIME: mime, Blob: kept.Ref, Size: kept.Size}
	path := f.copied(b.WorkDir, it.content)
	facts := []string{path, mime, size(kept.Size)}
	switch {
	case media.Pictured(mime):
		facts = append(facts, f.look(&it.content)...)
	case it.a.Kind == "voice" || it.a.Kind == "audio":
		if said, ok := f.listen(ctx, b.Hear, it); ok {
			facts, it.said = append(facts, "transcribed"), heard(it, said)
		} else {
			facts = append(facts, "not transcribed: "+it.unheard)
		}
	}
	it.content.Text = label(it, facts)
}

// spend counts bytes against what one person may fill the disk with, and says whether there was room for them. What is
// counted is forgotten at midnight and at a restart.
func (f *Fetcher) spend(in workspace.Input, size int64) bool {
	if in.Role.AtLeast(workspace.Owner) {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if day := f.now().Unix() / (24 * 60 * 60); day != f.day || f.spent == nil {
		f.day, f.spent = day, map[workspace.PersonID]int64{}
	}
	if f.spent[in.Person]+size > maxDay {
		return false
	}
	f.spent[in.Person] += size
	return true
}

// settle corrects what was spent once it is known how much came.
func (f *Fetcher) settle(in workspace.Input, more int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spent != nil && !in.Role.AtLeast(workspace.Owner) {
		f.spent[in.Person] += more
	}
}

// stem is what a file without a name is called.
func stem(kind string) string {
	switch kind {
	case "image", "audio", "voice", "video":
		return kind
	}
	return "file"
}

// label is how a model is told of a file. Its parts are the gateway's own words, a cleaned name and a type by the bytes.
func label(it *item, facts []string) string {
	what := it.a.Kind
	switch {
	case what == "voice":
		what = "voice message"
	case what == "image" && !strings.HasPrefix(it.content.MIME, "image/"): // so it was said
		what = "file"
	}
	if it.quoted {
		what += " of the quoted message"
	}
	facts = slices.DeleteFunc(facts, func(s string) bool { return s == "" })
	return "[attached " + what + ": " + strings.Join(facts, ", ") + "]"
}

func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// errNoOpener is a file that nobody can fetch.
var errNoOpener = errors.New("its channel gives no files")

// take fetches, and again after what may pass.
func (f *Fetcher) take(ctx context.Context, it *item) (blob.Kept, error) {
	if it.a.Size > maxAttachment {
		return blob.Kept{}, channels.ErrTooLarge
	}
	for try := 1; ; try++ {
		kept, err := f.takeOnce(ctx, it)
		wait := f.pause << (try - 1)
		var e *channels.Error
		if errors.As(err, &e) && e.After > wait {
			wait = e.After
		}
		if err == nil || lasting(err) || try == fetchTries || wait > f.timeout || !channels.Sleep(ctx, wait) {
			return kept, err
		}
	}
}

// lasting says that trying again is no use.
func lasting(err error) bool {
	for _, known := range []error{channels.ErrTooLarge, blob.ErrTooLarge, workspace.ErrNotFound, workspace.ErrInvalid, workspace.ErrSpace, errNoOpener} {
		if errors.Is(err, known) {
			return true
		}
	}
	switch channels.ClassOf(err) {
	case channels.BadMessage, channels.PeerGone, channels.Fatal:
		return true
	}
	return false
}

func (f *Fetcher) takeOnce(ctx context.Context, it *item) (blob.Kept, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if err := f.blobs.Room(max(it.a.Size, 1)); err != nil { // a channel may put it on the disk first
		return blob.Kept{}, err
	}
	file, err := f.open(ctx, it)
	if err != nil {
		return blob.Kept{}, err
	}
	var once sync.Once
	closed := func() { once.Do(func() { _ = file.Close() }) } // read to its end or given up: nothing to lose
	defer closed()
	defer context.AfterFunc(ctx, closed)() // a reader that knows no context
	return f.blobs.Take(file, maxAttachment)
}

// open asks the channel that the message came through. What a local surface uploaded is a blob already: its reference
// was checked when the message was taken.
func (f *Fetcher) open(ctx context.Context, it *item) (io.ReadCloser, error) {
	if l := f.channels.Named(it.in.Data.Channel); l != nil {
		if o, ok := channels.As[channels.Opener](l.Adapter); ok {
			return o.Open(ctx, it.a)
		}
	}
	if it.in.RoomID != "" {
		return nil, errNoOpener
	}
	kept, err := f.blobs.Open(it.a.ID)
	if err != nil { // no reader, and not one that is nil
		return nil, err
	}
	return kept, nil
}

// reason is what people are told of a failure; the log has the rest.
func (f *Fetcher) reason(it *item, err error) string {
	f.log.Warn("attachment cannot be fetched", "channel", it.in.Data.Channel, "input", it.in.ID, "err", err)
	switch {
	case errors.Is(err, channels.ErrTooLarge) || errors.Is(err, blob.ErrTooLarge):
		return fmt.Sprintf("it is larger than was said or than the %d MB that I take", maxAttachment>>20)
	case errors.Is(err, workspace.ErrSpace):
		return "the disk of this machine is nearly full"
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.Is(err, errNoOpener):
		return errNoOpener.Error()
	}
	return "it could not be downloaded"
}

// copied puts the file where the tools of the session see it, and returns its path there; empty: it could not.
func (f *Fetcher) copied(workDir string, c workspace.Content) string {
	path, err := f.copyTo(workDir, c)
	if err != nil {
		f.log.Error("attachment cannot be put into the work folder", "err", err)
		return c.Name
	}
	return path
}

func (f *Fetcher) copyTo(workDir string, c workspace.Content) (string, error) {
	src, err := f.blobs.Open(c.Blob)
	if err != nil {
		return "", err
	}
	defer src.Close()
	f.keeping.Lock()
	defer f.keeping.Unlock()
	root, err := workspace.OpenWork(workDir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	root.Under(f.blobs.Rule())
	return root.Keep(workspace.Inbox, c.Name, src)
}

// look makes the picture that models are shown, and says what it looked like or why it is not shown.
func (f *Fetcher) look(c *workspace.Content) (facts []string) {
	f.looking.Lock()
	defer f.looking.Unlock()
	data, err := f.blobs.Read(c.Blob)
	var p media.Picture
	if err == nil {
		p, err = media.Shrink(data)
	}
	if err == nil {
		var ref string
		if ref, err = f.blobs.Put(p.Data); err == nil {
			c.Kind, c.MIME, c.Blob, c.Size = workspace.Image, p.MIME, ref, int64(len(p.Data))
			return []string{fmt.Sprintf("%d×%d", p.Width, p.Height)}
		}
	}
	f.log.Info("picture cannot be shown", "err", err)
	if errors.Is(err, media.ErrPixels) {
		return []string{"not shown: it has too many pixels"}
	}
	return []string{"not shown: it cannot be read"}
}

// told puts together what the model gets of each message and what the person is told.
func (f *Fetcher) told(b Batch, items []*item) Fetched {
	out := Fetched{Content: map[workspace.InputID][]workspace.Content{}}
	var missing, unheard *item
	names := []string{}
	for _, it := range items {
		c := it.content
		if it.trouble != "" {
			name := media.Name(it.a.Name, stem(it.a.Kind), "")
			c = workspace.Content{Kind: workspace.Text, Text: "[attached " + stem(it.a.Kind) + " " + name + " is missing: " + it.trouble + "]"}
			names = append(names, strings.TrimSuffix(name, ".bin"))
			if missing == nil {
				missing = it
			}
		}
		if it.unheard != "" && unheard == nil {
			unheard = it
		}
		if c.Kind == workspace.Image || c.MIME == media.PDF {
			b.Newest++
			c.Nth = b.Newest
		}
		out.Content[it.in.ID] = append(out.Content[it.in.ID], c)
		if it.said != "" {
			out.Content[it.in.ID] = append(out.Content[it.in.ID], workspace.Content{Kind: workspace.Text, Text: it.said})
		}
	}
	if missing != nil {
		text := "I could not get your file " + strings.Join(names, ", ") + ": " + missing.trouble + "."
		if len(names) > 1 {
			text = "I could not get your files " + strings.Join(names, ", ") + ": of the first, " + missing.trouble + "."
		}
		out.Notices = append(out.Notices, Notice{In: missing.in, Text: text})
	}
	if unheard != nil {
		out.Notices = append(out.Notices, unheard.notice())
	}
	return out
}
