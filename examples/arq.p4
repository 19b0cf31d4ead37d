// The header of the stop-and-wait ARQ: behind UDP.
header arq_t {
    bit<8>  kind;        // 1 data, 2 acknowledgment, 3 end of data
    bit<8>  reserved;
    bit<16> length;      // bytes of data behind this header
    bit<32> sequence;    // number of the segment; an acknowledgment names the segment it answers
}
