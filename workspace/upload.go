package workspace

import "time"

const MaxUpload, MaxUploadDay = 20 << 20, 500 << 20 // bytes of one file, and of one person in 24 hours

// Upload is a file that a person gave to Parley itself, through a page or the API. Its bytes are in the blob store.
type Upload struct {
	Ref     string // of the blob
	Person  PersonID
	Kind    string // image, audio, video, file
	Name    string // made safe
	MIME    string // by its bytes
	Size    int64
	Created time.Time
}
