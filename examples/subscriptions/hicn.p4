// Requests for content whose name is the IPv6 destination, as in hybrid ICN; the segment is behind UDP.

@subscribe[after=udp, when=udp.destination_port == 9695]
header interest {
    @subscribe[match=range] bit<32> segment;
}
