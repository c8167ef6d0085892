package telegram

import (
	"fmt"
	"strings"

	"parley/channels"
)

// attachments are the files of a message. Nothing is fetched here: Open does, under its caps.
func (m *message) attachments() []channels.Attachment {
	var out []channels.Attachment
	add := func(f *media, kind, mime string) {
		if f == nil || f.FileID == "" {
			return
		}
		a := channels.Attachment{ID: f.FileID, Kind: kind, Name: f.Name, MIME: f.MIME, Size: max(f.Size, 0)}
		if a.MIME == "" {
			a.MIME = mime
		}
		out = append(out, a)
	}
	if m.Animation == nil { // an animation comes as a document, too
		add(m.Document, documentKind(m.Document), "application/octet-stream")
	}
	add(largest(m.Photo), "image", "image/jpeg")
	add(m.Voice, "voice", "audio/ogg")
	add(m.Audio, "audio", "audio/mpeg")
	add(m.Video, "video", "video/mp4")
	add(m.VideoNote, "video", "video/mp4")
	add(m.Animation, "video", "video/mp4")
	switch s := m.Sticker; {
	case s == nil:
	case s.IsVideo:
		add(s, "video", "video/webm")
	case s.IsAnimated:
		add(s, "file", "application/x-tgsticker")
	default:
		add(s, "image", "image/webp")
	}
	return out
}

func documentKind(f *media) string {
	if f != nil {
		kind, _, _ := strings.Cut(f.MIME, "/")
		switch kind {
		case "image", "audio", "video":
			return kind
		}
	}
	return "file"
}

func largest(sizes []media) *media {
	var best *media
	for i := range sizes {
		if p := &sizes[i]; best == nil || p.Width*p.Height >= best.Width*best.Height {
			best = p
		}
	}
	return best
}

// describe puts content without text into words, so that it is not met with silence. It is empty for service
// messages (joins, pins, titles), which nobody expects an answer to.
func (m *message) describe() string {
	switch {
	case m.Sticker != nil:
		return m.Sticker.Emoji
	case m.Venue != nil: // has a location, too
		return fmt.Sprintf("[venue: %s, %s]%s", m.Venue.Title, m.Venue.Address, m.Location.describe())
	case m.Location != nil:
		return m.Location.describe()
	case m.Contact != nil:
		return fmt.Sprintf("[contact: %s, %s]", strings.TrimSpace(m.Contact.First+" "+m.Contact.Last), m.Contact.Phone)
	case m.Poll != nil:
		var b strings.Builder
		b.WriteString("[poll: " + m.Poll.Question + "]")
		for _, o := range m.Poll.Options {
			b.WriteString("\n- " + o.Text)
		}
		return b.String()
	case m.Dice != nil:
		return fmt.Sprintf("[%s %d]", m.Dice.Emoji, m.Dice.Value)
	case m.Story != nil:
		return "[story]"
	case m.Paid != nil:
		return "[paid media]"
	case m.Game != nil:
		return "[game: " + m.Game.Title + "]"
	case m.Invoice != nil:
		return "[invoice: " + m.Invoice.Title + "]"
	case m.Checklist != nil:
		var b strings.Builder
		b.WriteString("[checklist: " + m.Checklist.Title + "]")
		for _, t := range m.Checklist.Tasks {
			b.WriteString("\n- " + t.Text)
		}
		return b.String()
	}
	return ""
}

func (l *location) describe() string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("[location: %.6f, %.6f]", l.Latitude, l.Longitude)
}
