// RoCEv2: InfiniBand's transport behind UDP, to port 4791 (InfiniBand Architecture Specification, Volume 1, chapter 9, and its annex A17).

// The base transport header (9.2). A packet that has it ends in an invariant CRC (7.8.1), over everything but what may change on the way.
@invariant_crc
header bth_t {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  migrated;
    bit<2>  pad_count;           // so many bytes of zeros behind the data make its length a multiple of four
    bit<4>  version;
    bit<16> partition;
    @variant bit<1> fecn;
    @variant bit<1> becn;        // of a notification of congestion (A17.9)
    @variant bit<6> reserved_a;
    bit<24> pair;                // the queue pair that it is for
    bit<1>  ack_request;
    bit<7>  reserved_b;
    bit<24> psn;                 // packet sequence number
}

// Immediate data (9.3.6).
header immediate_t {
    bit<32> value;
}

// The ACK extended transport header (9.3.5.1): the syndrome and how many messages are complete.
header aeth_t {
    bit<1>  reserved;
    bit<2>  kind;                // 0 ACK, 1 receiver not ready, 3 NAK
    bit<5>  value;               // of an ACK credits, of a receiver that is not ready its timer, of a NAK the reason
    bit<24> messages;
}
