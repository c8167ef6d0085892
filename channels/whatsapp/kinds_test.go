package whatsapp_test

import (
	"fmt"
	"testing"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"

	"parley/channels"
	"parley/channels/whatsapp/whatsapptest"
)

func covered(m *waE2E.Message) *waE2E.FutureProofMessage {
	return &waE2E.FutureProofMessage{Message: m}
}

func saying(text string) *waE2E.Message { return &waE2E.Message{Conversation: &text} }

// kinds are what people's phones send, and what of it is heard: a text, files, or nothing.
var kinds = []struct {
	name  string
	m     *waE2E.Message
	text  string // empty: nothing is heard, unless files are
	files int
}{
	{name: "a disappearing text", m: &waE2E.Message{EphemeralMessage: covered(saying("gone soon"))}, text: "gone soon"},
	{name: "covered twice", m: &waE2E.Message{EphemeralMessage: covered(&waE2E.Message{GroupMentionedMessage: covered(saying("twice"))})}, text: "twice"},
	{name: "covered without end", m: deep(50), text: ""},
	{name: "a picture to be viewed once", m: &waE2E.Message{ViewOnceMessageV2: covered(&waE2E.Message{ImageMessage: picture("once")})}, text: "once", files: 1},
	{name: "a voice note to be heard once", m: &waE2E.Message{ViewOnceMessageV2Extension: covered(&waE2E.Message{AudioMessage: &waE2E.AudioMessage{DirectPath: proto.String("/v/a"), MediaKey: make([]byte, 32), PTT: proto.Bool(true)}})}, files: 1},
	{name: "a document with a caption", m: &waE2E.Message{DocumentWithCaptionMessage: covered(&waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{DirectPath: proto.String("/v/d"), MediaKey: make([]byte, 32), Caption: proto.String("look"), FileName: proto.String("x.pdf")}})}, text: "look", files: 1},
	{name: "a round film", m: &waE2E.Message{PtvMessage: &waE2E.VideoMessage{DirectPath: proto.String("/v/p"), MediaKey: make([]byte, 32)}}, files: 1},
	{name: "a sticker", m: &waE2E.Message{StickerMessage: &waE2E.StickerMessage{DirectPath: proto.String("/v/s"), MediaKey: make([]byte, 32)}}, files: 1},
	{name: "an animated sticker", m: &waE2E.Message{LottieStickerMessage: covered(&waE2E.Message{StickerMessage: &waE2E.StickerMessage{DirectPath: proto.String("/v/s"), MediaKey: make([]byte, 32)}})}, files: 1},
	{name: "a place", m: &waE2E.Message{LocationMessage: &waE2E.LocationMessage{DegreesLatitude: proto.Float64(1.5), DegreesLongitude: proto.Float64(-2), Name: proto.String("Café")}}, text: "[location: Café 1.500000, -2.000000]"},
	{name: "a contact", m: &waE2E.Message{ContactMessage: &waE2E.ContactMessage{DisplayName: proto.String("Zoe"), Vcard: proto.String("BEGIN:VCARD\nitem1.TEL;waid=1:+1 2\nEND:VCARD")}}, text: "[contact: Zoe, +1 2]"},
	{name: "a poll", m: &waE2E.Message{PollCreationMessageV3: poll()}, text: "[poll: Where?]\n- here\n- there"},
	{name: "a poll of the newest kind", m: &waE2E.Message{PollCreationMessageV4: covered(&waE2E.Message{PollCreationMessageV3: poll()})}, text: "[poll: Where?]\n- here\n- there"},
	{name: "a vote", m: &waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{PollCreationMessageKey: &waCommon.MessageKey{ID: proto.String("X")}}}},
	{name: "a pressed button", m: &waE2E.Message{ButtonsResponseMessage: &waE2E.ButtonsResponseMessage{Response: &waE2E.ButtonsResponseMessage_SelectedDisplayText{SelectedDisplayText: "Yes"}}}, text: "Yes"},
	{name: "a chosen row", m: &waE2E.Message{ListResponseMessage: &waE2E.ListResponseMessage{Title: proto.String("Row 2")}}, text: "Row 2"},
	{name: "a pressed template button", m: &waE2E.Message{TemplateButtonReplyMessage: &waE2E.TemplateButtonReplyMessage{SelectedDisplayText: proto.String("Go on")}}, text: "Go on"},
	{name: "an answer to an interactive message", m: &waE2E.Message{InteractiveResponseMessage: &waE2E.InteractiveResponseMessage{Body: &waE2E.InteractiveResponseMessage_Body{Text: proto.String("Chosen")}}}, text: "Chosen"},
	{name: "a message with buttons", m: &waE2E.Message{ButtonsMessage: &waE2E.ButtonsMessage{ContentText: proto.String("Your order is ready")}}, text: "Your order is ready"},
	{name: "a message with a list", m: &waE2E.Message{ListMessage: &waE2E.ListMessage{Title: proto.String("Menu"), Description: proto.String("Choose")}}, text: "Menu\nChoose"},
	{name: "a template", m: &waE2E.Message{TemplateMessage: &waE2E.TemplateMessage{HydratedTemplate: &waE2E.TemplateMessage_HydratedFourRowTemplate{HydratedContentText: proto.String("Your code is 1")}}}, text: "Your code is 1"},
	{name: "an interactive message", m: &waE2E.Message{InteractiveMessage: &waE2E.InteractiveMessage{Body: &waE2E.InteractiveMessage_Body{Text: proto.String("Pick one")}}}, text: "Pick one"},
	{name: "goods", m: &waE2E.Message{ProductMessage: &waE2E.ProductMessage{Product: &waE2E.ProductMessage_ProductSnapshot{Title: proto.String("Lamp"), Description: proto.String("bright")}}}, text: "[product: Lamp] bright"},
	{name: "an order", m: &waE2E.Message{OrderMessage: &waE2E.OrderMessage{OrderTitle: proto.String("Lamps"), ItemCount: proto.Int32(2), Message: proto.String("please")}}, text: "[order: Lamps, 2 items] please"},
	{name: "a set of stickers", m: &waE2E.Message{StickerPackMessage: &waE2E.StickerPackMessage{Name: proto.String("Cats")}}, text: "[sticker pack: Cats]"},
	{name: "a request for money", m: &waE2E.Message{RequestPaymentMessage: &waE2E.RequestPaymentMessage{NoteMessage: saying("for lunch")}}, text: "[payment request] for lunch"},
	{name: "an invitation", m: &waE2E.Message{GroupInviteMessage: &waE2E.GroupInviteMessage{GroupName: proto.String("Chess"), Caption: proto.String("Come!")}}, text: "[invitation to the group: Chess] Come!"},
	{name: "what an AI said, forwarded", m: &waE2E.Message{BotForwardedMessage: covered(saying("said an AI"))}, text: "said an AI"},
	{name: "a question", m: &waE2E.Message{QuestionMessage: covered(saying("who comes?"))}, text: "who comes?"},
	{name: "a status in a group", m: &waE2E.Message{GroupStatusMessageV2: covered(saying("for all"))}},
	{name: "a mention in a status", m: &waE2E.Message{StatusMentionMessage: covered(saying("you"))}},
	{name: "a pin", m: &waE2E.Message{PinInChatMessage: &waE2E.PinInChatMessage{Key: &waCommon.MessageKey{ID: proto.String("X")}}}},
	{name: "a kept message", m: &waE2E.Message{KeepInChatMessage: &waE2E.KeepInChatMessage{Key: &waCommon.MessageKey{ID: proto.String("X")}}}},
	{name: "an album's announcement", m: &waE2E.Message{AlbumMessage: &waE2E.AlbumMessage{ExpectedImageCount: proto.Uint32(3)}}},
	{name: "a placeholder", m: &waE2E.Message{PlaceholderMessage: &waE2E.PlaceholderMessage{}}},
	{name: "a timer", m: &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum(), EphemeralExpiration: proto.Uint32(86400)}}},
	{name: "keys that no stranger may give", m: &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_SHARE.Enum(), AppStateSyncKeyShare: &waE2E.AppStateSyncKeyShare{}}}},
	{name: "history that no stranger may give", m: &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(), HistorySyncNotification: &waE2E.HistorySyncNotification{}}}},
	{name: "a copy that no stranger sends", m: &waE2E.Message{DeviceSentMessage: &waE2E.DeviceSentMessage{DestinationJID: proto.String(ben.PN().String()), Message: saying("as if to Ben")}}, text: "as if to Ben"},
	{name: "nothing", m: &waE2E.Message{}},
	{name: "an empty text", m: saying("")},
	{name: "a blank text", m: saying(" \n ")},
	{name: "a file without a key", m: &waE2E.Message{ImageMessage: &waE2E.ImageMessage{DirectPath: proto.String("/v/x")}}},
}

func picture(caption string) *waE2E.ImageMessage {
	return &waE2E.ImageMessage{DirectPath: proto.String("/v/i"), MediaKey: make([]byte, 32), Caption: proto.String(caption)}
}

func poll() *waE2E.PollCreationMessage {
	return &waE2E.PollCreationMessage{Name: proto.String("Where?"), Options: []*waE2E.PollCreationMessage_Option{{OptionName: proto.String("here")}, {OptionName: proto.String("there")}}}
}

func deep(n int) *waE2E.Message {
	m := saying("too deep")
	for range n {
		m = &waE2E.Message{EphemeralMessage: covered(m)}
	}
	return m
}

func TestEveryKindOfMessageIsHeardOrLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	r.ready()
	byID := map[channels.MessageID]channels.Inbound{}
	ids := make([]string, len(kinds))
	for i, k := range kinds {
		ids[i] = r.net.Raw(whatsapptest.In{From: ana.Phone, ID: fmt.Sprintf("3AKIND%04d", i)}, k.m)
	}
	r.net.Write(whatsapptest.In{From: ana.Phone, Text: "the end"})
	r.in.text(t, "the end")
	r.sees("all receipts", func() bool { return len(r.net.Waiting()) == 0 })
	for _, in := range r.in.all() {
		if in.To != r.dm(ana) || in.Kind != channels.KindMessage {
			t.Errorf("heard %+v", in)
		}
		byID[in.ID] = in
	}
	for i, k := range kinds {
		in := byID[of(ids[i], ana)]
		if in.Text != k.text || len(in.Attachments) != k.files {
			t.Errorf("%s: %q and %d files, want %q and %d", k.name, in.Text, len(in.Attachments), k.text, k.files)
		}
	}
}
