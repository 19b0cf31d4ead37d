// What a router looks at beside the built-in headers, and what it does.

@subscribe[after=ipv4, when=ipv4.protocol == 1]
@subscribe_action[name=answerARP, arguments="mac"]
@subscribe_action[name=answerND, arguments="mac"]
@subscribe_action[name=answerEcho]
@subscribe_action[name=timeExceeded, arguments="ipv4"]
@subscribe_action[name=timeExceededV6, arguments="ipv6"]
@subscribe_action[name=route, arguments="mac mac"]
header icmp {
    @subscribe[match=exact] bit<8> type;
    bit<8>  code;
    bit<16> checksum;
}

@subscribe[after=ipv6, when=ipv6.next_header == 58]
header icmpv6 {
    @subscribe[match=exact] bit<8> type;
    bit<8>  code;
    bit<16> checksum;
    bit<32> body;
    @subscribe[match=exact] bit<128> target;    // of neighbour discovery
}
