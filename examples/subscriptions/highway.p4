// Cars that report ten times a second where they are and how fast, after Linear Road.

@subscribe[after=udp, when=udp.destination_port == 5100]
header car {
    bit<32> number;
    bit<32> milliseconds;
    @subscribe[match=range]             bit<32> x;
    @subscribe[match=range]             bit<32> y;
    @subscribe[match=range, decimals=1] bit<16> speed;
    @subscribe[match=exact]             bit<8>  highway;
    @subscribe[match=exact]             bit<8>  lane;
    @subscribe[match=exact]             bit<8>  direction;
    @subscribe[match=exact]             bit<8>  segment;
}
