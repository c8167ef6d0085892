package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

const (
	// MaxEdge is the longer side of a picture as models get it, in pixels: more is scaled down by the providers
	// (https://platform.claude.com/docs/en/build-with-claude/vision) and only costs.
	MaxEdge = 1568
	// maxDecode is the memory that one picture may take, in bytes: a 40-megapixel photo just fits.
	maxDecode = 96 << 20
	// maxLossless is the size above which a picture that came without loss is kept with some.
	maxLossless = 1 << 20
	quality     = 85
)

// ErrPicture says that the bytes are not a picture that can be read. ErrPixels says that it would take too much memory.
var (
	ErrPicture = errors.New("not a picture that can be read")
	ErrPixels  = errors.New("too many pixels")
)

// Picture is one that was read and written again: there is nothing in it but pixels.
type Picture struct {
	Data          []byte
	MIME          string // image/jpeg or image/png
	Width, Height int    // of what came, in pixels
}

// Shrink reads a JPEG, PNG, GIF (its first frame) or WebP and writes it again, at most MaxEdge pixels wide and high.
// What it would cost is computed from the header first. The error is ErrPicture or ErrPixels.
func Shrink(data []byte) (p Picture, err error) {
	defer func() {
		if r := recover(); r != nil { // a decoder met what its authors did not think of
			p, err = Picture{}, fmt.Errorf("decoder panicked: %v: %w", r, ErrPicture)
		}
	}()
	f, ok := formatOf(data)
	if !ok {
		return Picture{}, ErrPicture
	}
	cfg, err := f.config(data)
	if err != nil || cfg.Width <= 0 || cfg.Height <= 0 {
		return Picture{}, fmt.Errorf("%w: %w", ErrPicture, err)
	}
	if cost := f.cost(data, cfg) * float64(cfg.Width) * float64(cfg.Height); cost > maxDecode {
		return Picture{}, fmt.Errorf("%d × %d: %w", cfg.Width, cfg.Height, ErrPixels)
	}
	img, err := f.decode(data)
	if err != nil {
		return Picture{}, fmt.Errorf("%w: %w", ErrPicture, err)
	}
	small := shrink(img)
	p = Picture{Width: cfg.Width, Height: cfg.Height}
	if turn := orientation(data); f.turns && turn > 1 {
		small = turned(small, turn)
		if turn >= 5 {
			p.Width, p.Height = p.Height, p.Width
		}
	}
	p.Data, p.MIME, err = encode(small, f.lossy)
	return p, err
}

// format is one that is read: its header, the bytes of memory that a pixel costs, and its pixels.
type format struct {
	lossy  bool
	turns  bool // it may say that it is to be turned
	config func([]byte) (image.Config, error)
	cost   func([]byte, image.Config) float64
	decode func([]byte) (image.Image, error)
}

func formatOf(data []byte) (format, bool) {
	switch Type(data[:min(len(data), HeadSize)]) {
	case "image/jpeg":
		return format{true, true, reading(jpeg.DecodeConfig), jpegCost, reading(jpeg.Decode)}, true
	case "image/png":
		return format{false, false, reading(png.DecodeConfig), pngCost, reading(png.Decode)}, true
	case "image/gif":
		return format{false, false, reading(gif.DecodeConfig), func([]byte, image.Config) float64 { return 3 }, reading(gif.Decode)}, true
	case "image/webp":
		// Lossless WebP holds its pixels twice.
		return format{true, false, reading(webp.DecodeConfig), func([]byte, image.Config) float64 { return 10 }, reading(webp.Decode)}, true
	}
	return format{}, false
}

func pngCost(_ []byte, c image.Config) float64 {
	per := 4.0
	switch c.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model:
		per = 8
	case color.GrayModel:
		per = 1
	case color.Gray16Model:
		per = 2
	}
	return 2*per + 1 // an interlaced one is put together from its passes
}

// jpegCost reads the frame header (ITU T.81 §B.2.2): a progressive picture keeps all its coefficients, four bytes each.
func jpegCost(data []byte, _ image.Config) float64 {
	const most = 4*5 + 1
	for at := 2; at+4 <= len(data); {
		if data[at] != 0xff {
			return most
		}
		marker := data[at+1]
		if marker == 0xff || marker == 0x01 || marker >= 0xd0 && marker <= 0xd7 { // fill bytes, markers alone
			at++
			if marker != 0xff {
				at++
			}
			continue
		}
		if marker < 0xc0 || marker > 0xc2 {
			at += 2 + int(binary.BigEndian.Uint16(data[at+2:]))
			continue
		}
		if at+10 > len(data) {
			return most
		}
		n := int(data[at+9])
		if n == 0 || n > 4 || at+10+3*n > len(data) {
			return most
		}
		sum, hMax, vMax := 0, 1, 1
		for i := range n {
			h, v := int(data[at+11+3*i]>>4), int(data[at+11+3*i]&15)
			sum, hMax, vMax = sum+h*v, max(hMax, h), max(vMax, v)
		}
		per := float64(sum) / float64(hMax*vMax)
		if n == 4 {
			per += 4 // put together as CMYK
		}
		if marker == 0xc2 {
			per *= 5
		}
		return per + 1
	}
	return most
}

func reading[T any](read func(r io.Reader) (T, error)) func([]byte) (T, error) {
	return func(data []byte) (T, error) { return read(bytes.NewReader(data)) }
}

// shrink halves the picture until it is less than twice too large, which at exactly one half is the mean of four
// pixels, and then scales the rest. One step over the whole way would either miss pixels or hold every row at once.
func shrink(img image.Image) image.Image {
	for {
		w, h := img.Bounds().Dx(), img.Bounds().Dy()
		edge := max(w, h)
		if edge <= MaxEdge {
			return img
		}
		nw, nh := (w+1)/2, (h+1)/2
		if edge < 2*MaxEdge {
			nw, nh = max(1, w*MaxEdge/edge), max(1, h*MaxEdge/edge)
		}
		next := image.NewRGBA(image.Rect(0, 0, nw, nh))
		draw.ApproxBiLinear.Scale(next, next.Bounds(), img, img.Bounds(), draw.Src, nil)
		img = next
	}
}

// encode writes what came without loss as PNG, unless that is large; all else as JPEG, over white.
func encode(img image.Image, lossy bool) (data []byte, mime string, err error) {
	var b bytes.Buffer
	clear := !opaque(img)
	if !lossy || clear {
		if err := png.Encode(&b, img); err != nil {
			return nil, "", fmt.Errorf("write picture: %w", err)
		}
		if b.Len() <= maxLossless {
			return b.Bytes(), "image/png", nil
		}
		b.Reset()
	}
	if clear {
		flat := image.NewRGBA(img.Bounds())
		draw.Draw(flat, flat.Bounds(), image.White, image.Point{}, draw.Src)
		draw.Draw(flat, flat.Bounds(), img, img.Bounds().Min, draw.Over)
		img = flat
	}
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, "", fmt.Errorf("write picture: %w", err)
	}
	return b.Bytes(), "image/jpeg", nil
}

func opaque(img image.Image) bool {
	o, ok := img.(interface{ Opaque() bool })
	return ok && o.Opaque()
}
