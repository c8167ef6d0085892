package whatsapp

import (
	"fmt"
	"strings"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"

	"parley/channels"
)

// unwrap takes a message out of what other messages wrap it in. whatsmeow does so for what arrives, not for what is quoted
// or was edited.
func unwrap(m *waE2E.Message) *waE2E.Message {
	for range 8 { // deeper is nobody's honest message
		var in *waE2E.Message
		for _, w := range []interface{ GetMessage() *waE2E.Message }{
			m.GetEphemeralMessage(), m.GetViewOnceMessage(), m.GetViewOnceMessageV2(), m.GetViewOnceMessageV2Extension(),
			m.GetDocumentWithCaptionMessage(), m.GetGroupMentionedMessage(), m.GetAssociatedChildMessage(), m.GetLottieStickerMessage(),
			m.GetBotInvokeMessage(), m.GetEditedMessage(), m.GetPollCreationMessageV4(), m.GetBotForwardedMessage(), m.GetQuestionMessage(),
			m.GetQuestionReplyMessage(),
		} {
			if in = w.GetMessage(); in != nil {
				break
			}
		}
		if in == nil {
			return m
		}
		m = in
	}
	return m
}

// textOf is what the writer typed, or chose. Blanks alone are nothing.
func textOf(m *waE2E.Message) string {
	for _, text := range []string{
		m.GetConversation(), m.GetExtendedTextMessage().GetText(), m.GetImageMessage().GetCaption(), m.GetVideoMessage().GetCaption(),
		m.GetDocumentMessage().GetCaption(), m.GetButtonsResponseMessage().GetSelectedDisplayText(), m.GetListResponseMessage().GetTitle(),
		m.GetTemplateButtonReplyMessage().GetSelectedDisplayText(), m.GetCommentMessage().GetMessage().GetConversation(),
		m.GetInteractiveResponseMessage().GetBody().GetText(), businessText(m),
	} {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// businessText is what the programs of companies write.
func businessText(m *waE2E.Message) string {
	t := m.GetTemplateMessage()
	four := t.GetHydratedTemplate()
	if four == nil {
		four = t.GetHydratedFourRowTemplate()
	}
	l := m.GetListMessage()
	for _, text := range []string{
		m.GetButtonsMessage().GetContentText(), m.GetInteractiveMessage().GetBody().GetText(), four.GetHydratedContentText(),
		strings.Trim(l.GetTitle()+"\n"+l.GetDescription(), "\n"),
	} {
		if text != "" {
			return text
		}
	}
	return ""
}

// contextOf is what a message answers and whom it mentions; nil, which its getters bear, when there is none.
func contextOf(m *waE2E.Message) *waE2E.ContextInfo {
	for _, c := range []*waE2E.ContextInfo{
		m.GetExtendedTextMessage().GetContextInfo(), m.GetImageMessage().GetContextInfo(), m.GetVideoMessage().GetContextInfo(),
		m.GetPtvMessage().GetContextInfo(), m.GetDocumentMessage().GetContextInfo(), m.GetAudioMessage().GetContextInfo(),
		m.GetStickerMessage().GetContextInfo(), m.GetContactMessage().GetContextInfo(), m.GetContactsArrayMessage().GetContextInfo(),
		m.GetLocationMessage().GetContextInfo(), m.GetLiveLocationMessage().GetContextInfo(), m.GetButtonsResponseMessage().GetContextInfo(),
		m.GetListResponseMessage().GetContextInfo(), m.GetTemplateButtonReplyMessage().GetContextInfo(), pollOf(m).GetContextInfo(),
		m.GetGroupInviteMessage().GetContextInfo(), m.GetInteractiveResponseMessage().GetContextInfo(), m.GetEventMessage().GetContextInfo(),
		m.GetProductMessage().GetContextInfo(), m.GetOrderMessage().GetContextInfo(), m.GetStickerPackMessage().GetContextInfo(),
		m.GetButtonsMessage().GetContextInfo(), m.GetListMessage().GetContextInfo(), m.GetInteractiveMessage().GetContextInfo(),
		m.GetTemplateMessage().GetContextInfo(),
	} {
		if c != nil {
			return c
		}
	}
	return nil
}

func pollOf(m *waE2E.Message) *waE2E.PollCreationMessage {
	for _, p := range []*waE2E.PollCreationMessage{m.GetPollCreationMessage(), m.GetPollCreationMessageV2(), m.GetPollCreationMessageV3(), m.GetPollCreationMessageV5()} {
		if p != nil {
			return p
		}
	}
	return nil
}

// albumOf names the album that a picture is of: the message that announced it, which holds nothing itself.
func albumOf(m, outer *waE2E.Message, by human) string {
	for _, c := range []*waE2E.MessageContextInfo{m.GetMessageContextInfo(), outer.GetMessageContextInfo()} {
		a := c.GetMessageAssociation()
		if id := a.GetParentMessageKey().GetID(); id != "" && a.GetAssociationType() == waE2E.MessageAssociation_MEDIA_ALBUM {
			return string(foreignID(id, by.user))
		}
	}
	return ""
}

// media is what all kinds of files have.
type media interface {
	whatsmeow.DownloadableMessage
	GetMimetype() string
	GetFileLength() uint64
}

// attachments are the files of a message. Nothing is fetched here: Open does, under its caps.
func (s *session) attachments(m *waE2E.Message) ([]channels.Attachment, error) {
	var out []channels.Attachment
	add := func(f media, there bool, kind, name, mime string) error {
		// A path leads away from WhatsApp's own hosts if it does not begin like one (whatsmeow's download-to-file.go).
		if !there || !strings.HasPrefix(f.GetDirectPath(), "/") || len(f.GetMediaKey()) == 0 {
			return nil
		}
		size := int64(min(f.GetFileLength(), 1<<62))
		id, err := s.v.seal.close(ref{Path: f.GetDirectPath(), Key: f.GetMediaKey(), Plain: f.GetFileSHA256(), Enc: f.GetFileEncSHA256(),
			Type: string(whatsmeow.GetMediaType(f)), Size: size})
		if err != nil {
			return err
		}
		a := channels.Attachment{ID: id, Kind: kind, Name: name, MIME: mimeOf(f.GetMimetype(), mime), Size: size}
		out = append(out, a)
		return nil
	}
	doc, audio := m.GetDocumentMessage(), m.GetAudioMessage()
	voice := "audio"
	if audio.GetPTT() {
		voice = "voice"
	}
	for _, err := range []error{
		add(m.GetImageMessage(), m.GetImageMessage() != nil, "image", "", "image/jpeg"),
		add(m.GetVideoMessage(), m.GetVideoMessage() != nil, "video", "", "video/mp4"),
		add(m.GetPtvMessage(), m.GetPtvMessage() != nil, "video", "", "video/mp4"),
		add(audio, audio != nil, voice, "", "audio/ogg"),
		add(doc, doc != nil, documentKind(doc.GetMimetype()), documentName(doc), "application/octet-stream"),
		add(m.GetStickerMessage(), m.GetStickerMessage() != nil, "image", "", "image/webp"),
	} {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mimeOf is a type without its parameters: voice notes come as "audio/ogg; codecs=opus".
func mimeOf(said, otherwise string) string {
	said, _, _ = strings.Cut(said, ";")
	if said = strings.TrimSpace(said); said == "" {
		return otherwise
	}
	return said
}

func documentName(d *waE2E.DocumentMessage) string {
	if d.GetFileName() != "" {
		return d.GetFileName()
	}
	return d.GetTitle()
}

func documentKind(mime string) string {
	kind, _, _ := strings.Cut(mime, "/")
	switch kind {
	case "image", "audio", "video":
		return kind
	}
	return "file"
}

// describe puts content without text into words, so that it is not met with silence. It is empty for what nobody expects
// an answer to.
func describe(m *waE2E.Message) string {
	switch {
	case m.GetLocationMessage() != nil:
		l := m.GetLocationMessage()
		where := strings.Trim(l.GetName()+", "+l.GetAddress(), ", ")
		if where != "" {
			where = " " + where
		}
		return fmt.Sprintf("[location:%s %.6f, %.6f]", where, l.GetDegreesLatitude(), l.GetDegreesLongitude())
	case m.GetLiveLocationMessage() != nil:
		l := m.GetLiveLocationMessage()
		return fmt.Sprintf("[live location: %.6f, %.6f] %s", l.GetDegreesLatitude(), l.GetDegreesLongitude(), l.GetCaption())
	case m.GetContactMessage() != nil:
		return contact(m.GetContactMessage())
	case m.GetContactsArrayMessage() != nil:
		var all []string
		for _, c := range m.GetContactsArrayMessage().GetContacts() {
			all = append(all, contact(c))
		}
		return strings.Join(all, "\n")
	case pollOf(m) != nil:
		var b strings.Builder
		b.WriteString("[poll: " + pollOf(m).GetName() + "]")
		for _, o := range pollOf(m).GetOptions() {
			b.WriteString("\n- " + o.GetOptionName())
		}
		return b.String()
	case m.GetEventMessage() != nil:
		return "[event: " + m.GetEventMessage().GetName() + "] " + m.GetEventMessage().GetDescription()
	case m.GetGroupInviteMessage() != nil:
		return labelled("invitation to the group: "+m.GetGroupInviteMessage().GetGroupName(), m.GetGroupInviteMessage().GetCaption())
	}
	return describeTrade(m)
}

// describeTrade is describe for what is sold and paid.
func describeTrade(m *waE2E.Message) string {
	switch {
	case m.GetProductMessage() != nil:
		p := m.GetProductMessage()
		return labelled("product: "+p.GetProduct().GetTitle(), p.GetBody()+p.GetProduct().GetDescription())
	case m.GetOrderMessage() != nil:
		o := m.GetOrderMessage()
		return labelled(fmt.Sprintf("order: %s, %d items", o.GetOrderTitle(), o.GetItemCount()), o.GetMessage())
	case m.GetStickerPackMessage() != nil:
		return labelled("sticker pack: "+m.GetStickerPackMessage().GetName(), m.GetStickerPackMessage().GetCaption())
	case m.GetRequestPaymentMessage() != nil:
		return labelled("payment request", textOf(m.GetRequestPaymentMessage().GetNoteMessage()))
	case m.GetSendPaymentMessage() != nil:
		return labelled("payment", textOf(m.GetSendPaymentMessage().GetNoteMessage()))
	}
	return ""
}

// labelled is a line that names something, and what its writer said of it.
func labelled(label, text string) string { return strings.TrimSpace("[" + label + "] " + text) }

func contact(c *waE2E.ContactMessage) string {
	var numbers []string
	for line := range strings.Lines(c.GetVcard()) {
		head, number, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && (strings.HasPrefix(head, "TEL") || strings.Contains(head, ".TEL")) {
			numbers = append(numbers, number)
		}
	}
	return strings.TrimSuffix("[contact: "+c.GetDisplayName()+", "+strings.Join(numbers, ", "), ", ") + "]"
}

// strange says that a message holds something that this client does not know at all, such as a kind newer than itself.
// What it knows and does not carry (a pin, a vote, key material) is passed by.
func strange(m *waE2E.Message) bool {
	return len(m.ProtoReflect().GetUnknown()) > 0
}
