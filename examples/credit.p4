// The header of the transport with credits: behind UDP.
header credit_t {
    bit<8>  kind;        // 1 request, 2 grant, 3 data
    bit<8>  reserved;
    bit<16> length;      // bytes of data behind this header
    bit<32> position;    // of a request: how many bytes there are to send in all; of a grant: up to where they may be sent;
                         // of data: where its first byte stands
}
