// A message and the credits for it: behind UDP.
header message_t {
    bit<8>  kind;        // 1 data, 2 grant, 3 resend, 4 done
    bit<8>  priority;    // of a grant: the class, 0 to 7, in which to send what it grants
    bit<8>  complete;    // of data: 1 if `total` is the whole message
    bit<8>  reserved;
    bit<32> offset;      // of data: its first byte; of a grant: up to where bytes may be sent; of a resend: the first that is missing
    bit<32> end;         // of a resend: up to where they are missing; of a grant: up to where all have arrived
    bit<32> id;          // drawn by the sender: another message between the same ports has another one
    bit<32> total;       // of data: how many bytes the message is known to have
}
