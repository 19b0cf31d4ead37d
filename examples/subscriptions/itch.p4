// Nasdaq TotalView-ITCH 5.0 in MoldUDP64: several messages in one packet, each with its length in front.

@subscribe[after=udp, when=udp.destination_port == 26400, messages=count, prefix=16]
header mold {
    bit<80> session;
    bit<64> sequence;
    bit<16> count;
}

@subscribe[message=mold, when=type == "A"]
@subscribe_counter[name=orders, window="1ms"]
header add_order {
    bit<8>  type;
    bit<16> stock_locate;
    bit<16> tracking;
    bit<48> timestamp;
    bit<64> reference;
    @subscribe[match=exact, text=" "]
    bit<8>  side;
    @subscribe[match=range]
    bit<32> shares;
    @subscribe[match=exact, text=" "]
    bit<64> stock;
    @subscribe[match=range, decimals=4]
    bit<32> price;
}

@subscribe[message=mold, when=type == "P"]
header trade {
    bit<8>  type;
    bit<16> stock_locate;
    bit<16> tracking;
    bit<48> timestamp;
    bit<64> reference;
    bit<8>  side;
    @subscribe[match=range]
    bit<32> shares;
    @subscribe[match=exact, text=" "]
    bit<64> stock;
    @subscribe[match=range, decimals=4]
    bit<32> price;
    bit<64> match_number;
}
