package storetest

import (
	"errors"
	"testing"
	"time"

	"parley/workspace"
	"parley/workspace/store"
)

// A file that is uploaded again is the same upload; a person's day has its end, another's has not.
func uploadsCounted(t *testing.T, s *store.Store) {
	now := time.UnixMilli(1_700_000_000_000).UTC()
	day := now.Add(-24 * time.Hour)
	file := func(ref string, who workspace.PersonID, size int64, at time.Time) workspace.Upload {
		return workspace.Upload{Ref: ref, Person: who, Kind: "file", Name: ref + ".txt", MIME: "text/plain", Size: size, Created: at}
	}
	for _, u := range []workspace.Upload{file("old", "ana", 90, day.Add(-time.Hour)), file("a", "ana", 60, now), file("a", "ana", 60, now), file("a", "ben", 60, now)} {
		if err := s.AddUpload(u, day, 100); err != nil {
			t.Fatalf("%s of %s: %v", u.Ref, u.Person, err)
		}
	}
	if err := s.AddUpload(file("b", "ana", 41, now), day, 100); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("more than a day holds: %v", err)
	}
	if err := s.AddUpload(file("c", "ana", 40, now), day, 100); err != nil {
		t.Errorf("as much as a day holds: %v", err)
	}
	if sum, err := s.UploadedSince("ana", day); err != nil || sum != 100 {
		t.Errorf("%d bytes, %v", sum, err)
	}
	if got, err := s.Upload("ben", "a"); err != nil || got != file("a", "ben", 60, now) {
		t.Errorf("%+v, %v", got, err)
	}
	for who, ref := range map[workspace.PersonID]string{"ben": "c", "ana": "b", "": "a"} {
		if _, err := s.Upload(who, ref); !errors.Is(err, workspace.ErrNotFound) {
			t.Errorf("%s of %q: %v", ref, who, err)
		}
	}
}
