// Reports of in-band network telemetry: what a packet met at each switch on its way, a message a hop. The words of a hop are those of
// INT 1.0: switch id, hop latency, queue id and occupancy. The header in front is this example's own.

@subscribe[after=udp, when=udp.destination_port == 32766, messages=hops, size=12]
header report {
    bit<4>  version;
    bit<4>  reserved;
    bit<8>  hops;
    bit<16> domain;
    bit<32> sequence;
}

@subscribe[message=report]
header int {
    @subscribe[match=exact]
    bit<32> switch_id;
    @subscribe[match=range]
    bit<32> hop_latency;
    @subscribe[match=exact]
    bit<8>  queue;
    @subscribe[match=range]
    bit<24> queue_occupancy;
}
