package seglog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
)

const (
	magic       = "NARADSEG"
	version     = 1
	headerBytes = 24
	frameBytes  = 20 // before the body
	sectorBytes = 512
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errShort says that the bytes end before the frame does; errBad that what stands there is not the frame awaited.
var (
	errShort = errors.New("the frame is incomplete")
	errBad   = errors.New("the checksum does not match")
	errOrder = errors.New("the frame has another sequence number")
)

// Frame is one entry of the log. Body points into memory of whoever gave it.
type Frame struct {
	Seq  int64
	Body []byte
}

// segmentHeader makes a segment's header.
func segmentHeader(first int64) []byte {
	h := append(make([]byte, 0, headerBytes), magic...)
	h = binary.LittleEndian.AppendUint32(h, version)
	h = binary.LittleEndian.AppendUint64(h, uint64(first))
	return binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
}

// parseHeader reads a segment's header and tells what is wrong with it.
func parseHeader(data []byte) (first int64, err error) {
	switch {
	case len(data) < headerBytes:
		return 0, errors.New("the header is incomplete")
	case string(data[:8]) != magic:
		return 0, errors.New("the file is no segment of a log")
	case binary.LittleEndian.Uint32(data[20:]) != crc32.Checksum(data[:20], castagnoli):
		return 0, errors.New("the checksum of the header does not match")
	case binary.LittleEndian.Uint32(data[8:]) != version:
		return 0, ErrVersion
	}
	return int64(binary.LittleEndian.Uint64(data[12:])), nil
}

// header is the part of a frame before its body, not verified.
type header struct {
	length int
	seq    int64
	back   int64
}

func peek(data []byte) header {
	return header{
		length: int(binary.LittleEndian.Uint32(data[4:])),
		seq:    int64(binary.LittleEndian.Uint64(data[8:])),
		back:   int64(binary.LittleEndian.Uint32(data[16:])),
	}
}

// parseFrame reads the frame at the start of data, which must carry the sequence number seq, and returns its length whole.
// errShort means that data may hold only its beginning.
func parseFrame(data []byte, seq int64) (body []byte, size int, err error) {
	body, _, size, err = parseSummed(data, seq)
	return body, size, err
}

// parseSummed is parseFrame, and tells the checksum of the body alone.
func parseSummed(data []byte, seq int64) (body []byte, sum uint32, size int, err error) {
	if len(data) < frameBytes {
		return nil, 0, 0, errShort
	}
	h := peek(data)
	if h.length > MaxBody {
		return nil, 0, 0, errBad
	}
	size = frameBytes + h.length
	if len(data) < size {
		return nil, 0, size, errShort
	}
	body = data[frameBytes:size:size]
	sum = crc32.Checksum(body, castagnoli)
	if whole(sum, data) != binary.LittleEndian.Uint32(data) {
		return nil, 0, size, errBad
	}
	if h.seq != seq {
		return nil, 0, size, errOrder
	}
	return body, sum, size, nil
}

// whole is the checksum of a frame, which covers its body, whose own is sum, and then the rest of its head.
func whole(sum uint32, frame []byte) uint32 {
	return crc32.Update(sum, castagnoli, frame[4:frameBytes])
}

// Frames reads the frames of data from its start, the first of which must carry the sequence number first, as far as they
// are good. valid is how many bytes they take; what follows is incomplete, damaged or of another order.
func Frames(data []byte, first int64) (frames []Frame, valid int) {
	for seq := first; ; seq++ {
		body, size, err := parseFrame(data[valid:], seq)
		if err != nil {
			return frames, valid
		}
		frames = append(frames, Frame{Seq: seq, Body: body})
		valid += size
	}
}

// later finds the first good frame in data behind its start whose sequence number is above seq and below what data could
// hold, and which fits.
func later(data []byte, seq int64, fits func(header) bool) (at int, h header, ok bool) {
	highest := seq + int64(len(data)/frameBytes) + 1
	for at = 1; at+frameBytes <= len(data); at++ {
		h = peek(data[at:])
		if h.seq <= seq || h.seq > highest || h.length > MaxBody || h.back > h.seq || !fits(h) {
			continue
		}
		if _, _, err := parseFrame(data[at:], h.seq); err == nil {
			return at, h, true
		}
	}
	return 0, header{}, false
}

// lost tells whether data, which stands at the offset origin of its file, has a sector that was allocated and never
// written: such a sector reads as zeros, the first one from origin on, where an earlier write may have ended.
func lost(data []byte, origin int64) bool {
	for from := 0; from < len(data); {
		end := from + sectorBytes - int((origin+int64(from))%sectorBytes)
		if end > len(data) {
			return false
		}
		if !slices.ContainsFunc(data[from:end], func(b byte) bool { return b != 0 }) {
			return true
		}
		from = end
	}
	return false
}
