// uTP's header, version 1 (BEP 29): behind UDP.
header utp_t {
    bit<4>  packet_type;                   // 0 ST_DATA, 1 ST_FIN, 2 ST_STATE, 3 ST_RESET, 4 ST_SYN
    bit<4>  version;
    bit<8>  extension;              // the kind of the first extension; 0: none
    bit<16> connection_id;
    bit<32> timestamp;              // when it left, in microseconds
    bit<32> timestamp_difference;   // how long the latest packet of the other end was on its way, by both clocks
    bit<32> wnd_size;               // bytes that there is room for
    bit<16> seq_nr;                 // numbers count packets
    bit<16> ack_nr;                 // the last that has arrived in order
}

// The extension of kind 1: bit 0 of the first byte is packet ack_nr + 2, bit 7 is ack_nr + 9, bit 0 of the second byte is ack_nr + 10.
header selective_t {
    bit<8>  next;
    bit<8>  length;                 // bytes of the mask: 4, as libutp has it
    bit<32> mask;
}
