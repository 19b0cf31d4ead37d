typedef bit<32> sequence_t;
header probe_t { bit<8> kind; bit<24> reserved; sequence_t sequence; }
header trailer_t { bit<16> mark; }
