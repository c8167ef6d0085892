package media

import (
	"bytes"
	"encoding/binary"
	"image"
)

// orientation reads how a JPEG wants to be turned (EXIF 2.32, tag 0x0112): 1 to 8, where 1 is as it is. What cannot be
// read is 1.
func orientation(data []byte) int {
	for at := 2; at+4 <= len(data) && data[at] == 0xff && data[at+1] != 0xda; { // up to the pixels
		size := int(binary.BigEndian.Uint16(data[at+2:]))
		if size < 2 || at+2+size > len(data) {
			break
		}
		if exif, ok := bytes.CutPrefix(data[at+4:at+2+size], []byte("Exif\x00\x00")); ok && data[at+1] == 0xe1 {
			return exifOrientation(exif)
		}
		at += 2 + size
	}
	return 1
}

// exifOrientation looks through the first directory of a TIFF header.
func exifOrientation(b []byte) int {
	var order binary.ByteOrder = binary.BigEndian
	switch {
	case len(b) < 8:
		return 1
	case b[0] == 'I':
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at+2 > int64(len(b)) {
		return 1
	}
	entries := int64(order.Uint16(b[at:]))
	for i := range entries {
		e := at + 2 + 12*i
		if e+12 > int64(len(b)) {
			return 1
		}
		if order.Uint16(b[e:]) == 0x0112 {
			if v := int(order.Uint16(b[e+8:])); v >= 1 && v <= 8 {
				return v
			}
			return 1
		}
	}
	return 1
}

// turned is img as it is to be looked at.
func turned(img image.Image, orientation int) image.Image {
	if orientation <= 1 {
		return img
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if orientation >= 5 {
		w, h = h, w
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			sx, sy := source(orientation, x, y, w, h)
			out.Set(x, y, img.At(b.Min.X+sx, b.Min.Y+sy))
		}
	}
	return out
}

// source is which pixel of the stored picture is seen at (x, y) of the turned one, which is w × h.
func source(orientation, x, y, w, h int) (sx, sy int) {
	switch orientation {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return y, w - 1 - x
	case 7:
		return h - 1 - y, w - 1 - x
	case 8:
		return h - 1 - y, x
	}
	return x, y
}
