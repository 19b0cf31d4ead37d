// A stream of bytes in datagrams: behind UDP.
header stream_t {
    bit<8>  kind;        // 1 data, 2 acknowledgment
    bit<8>  last;        // of data: 1 if the stream ends behind it
    bit<16> reserved;
    bit<32> sequence;    // of data: its first byte; of an acknowledgment: the first that is missing. The end counts as a byte, too
    bit<32> timestamp;   // when the data left by the sender's clock, in microseconds; an acknowledgment has that of the data it answers
    bit<32> delay;       // of an acknowledgment: from then to when the data came by the receiver's clock, in microseconds
    bit<32> left;        // of an acknowledgment: the first byte of the data it answers,
    bit<32> right;       // and up to where everything has arrived from there on
    bit<32> window;      // of an acknowledgment: so many bytes from `sequence` on have room
}
