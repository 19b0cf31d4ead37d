// The built-in header formats. `crates/core/src/format.rs` reads this file and adds what P4 header types cannot
// say: overlapping fields (tcp.flags), fields of TCP options, the first words of a UDP payload, and the
// pseudo-headers `network` and `transport`.

header ethernet {            // IEEE 802.3, Ethernet II
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header vlan {                // IEEE 802.1Q; the outermost tag, behind its tag protocol identifier
    bit<3>  priority;
    bit<1>  drop_eligible;
    bit<12> id;
    bit<16> type;
}

header arp {                 // RFC 826 for IPv4 over Ethernet
    bit<16> hardware_type;
    bit<16> protocol_type;
    bit<8>  hardware_length;
    bit<8>  protocol_length;
    bit<16> operation;
    bit<48> sender_mac;
    bit<32> sender_address;
    bit<48> target_mac;
    bit<32> target_address;
}

header ipv4 {                // RFC 791, RFC 3168
    bit<4>  version;
    bit<4>  header_length;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header ipv6 {                // RFC 8200
    bit<4>   version;
    bit<6>   dscp;
    bit<2>   ecn;
    bit<20>  flow_label;
    bit<16>  payload_length;
    bit<8>   next_header;
    bit<8>   hop_limit;
    bit<128> source;
    bit<128> destination;
}

header tcp {                 // RFC 9293
    bit<16> source_port;
    bit<16> destination_port;
    bit<32> sequence;
    bit<32> acknowledgment;
    bit<4>  data_offset;
    bit<4>  reserved;
    bit<1>  cwr;
    bit<1>  ece;
    bit<1>  urg;
    bit<1>  ack;
    bit<1>  psh;
    bit<1>  rst;
    bit<1>  syn;
    bit<1>  fin;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_pointer;
}

header udp {                 // RFC 768
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> length;
    bit<16> checksum;
}
