// Identifier-locator addressing: what the switch does to addresses, and how it answers for those that are nowhere.

@subscribe[after=ipv6, when=ipv6.next_header == 58]
@subscribe_action[name=answerND, arguments="mac"]
@subscribe_action[name=setLocator, arguments="ipv6"]
@subscribe_action[name=setSourceLocator, arguments="ipv6"]
@subscribe_action[name=route, arguments="mac mac"]
header icmpv6 {
    @subscribe[match=exact] bit<8> type;
    bit<8>  code;
    bit<16> checksum;
    bit<32> body;
    @subscribe[match=exact] bit<128> target;    // of neighbour discovery
}
