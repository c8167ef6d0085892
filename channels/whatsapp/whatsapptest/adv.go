package whatsapptest

import (
	"fmt"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// The two signatures of a linked device: the phone's over (6,0, details, device key), the device's over (6,1, details,
// device key, account key).
func advMessage(kind byte, parts ...[]byte) []byte {
	m := []byte{6, kind}
	for _, p := range parts {
		m = append(m, p...)
	}
	return m
}

func vouch(primary *keys.KeyPair, device *[32]byte, index uint32, at time.Time) (*waAdv.ADVSignedDeviceIdentity, error) {
	details, err := proto.Marshal(&waAdv.ADVDeviceIdentity{
		RawID: proto.Uint32(1000 + index), Timestamp: proto.Uint64(uint64(at.Unix())), KeyIndex: proto.Uint32(index),
	})
	if err != nil {
		return nil, fmt.Errorf("write a device identity: %w", err)
	}
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*primary.Priv), advMessage(0, details, device[:]))
	return &waAdv.ADVSignedDeviceIdentity{Details: details, AccountSignatureKey: primary.Pub[:], AccountSignature: sig[:]}, nil
}

// sign adds the device's own signature.
func sign(id *waAdv.ADVSignedDeviceIdentity, device *keys.KeyPair) {
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*device.Priv), advMessage(1, id.Details, device.Pub[:], id.AccountSignatureKey))
	id.DeviceSignature = sig[:]
}

// verify checks what a client sends of its identity: phones do not take a first message without it.
func verify(raw []byte, primary *keys.KeyPair, device [32]byte) error {
	var id waAdv.ADVSignedDeviceIdentity
	if err := proto.Unmarshal(raw, &id); err != nil {
		return fmt.Errorf("read a device identity: %w", err)
	}
	account := ecc.NewDjbECPublicKey(*primary.Pub)
	if len(id.AccountSignature) != 64 || !ecc.VerifySignature(account, advMessage(0, id.Details, device[:]), [64]byte(id.AccountSignature)) {
		return fmt.Errorf("the account's signature is wrong")
	}
	own := ecc.NewDjbECPublicKey(device)
	if len(id.DeviceSignature) != 64 || !ecc.VerifySignature(own, advMessage(1, id.Details, device[:], primary.Pub[:]), [64]byte(id.DeviceSignature)) {
		return fmt.Errorf("the device's signature is wrong")
	}
	return nil
}
