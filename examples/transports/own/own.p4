// A stream of bytes in segments: behind UDP.
header own_t {
    bit<8>  kind;        // 1 segment, 2 acknowledgment, 3 end of the stream
    bit<24> reserved;
    bit<32> sequence;    // of a segment: its first byte; of an acknowledgment: the first byte that is missing. The end counts as a byte, too
    bit<32> timestamp;   // when the segment left by the sender's clock, in microseconds; an acknowledgment has that of the segment it answers
    bit<32> left;        // of an acknowledgment: the first byte of the segment it answers,
    bit<32> right;       // and up to where all has arrived from there on
}
