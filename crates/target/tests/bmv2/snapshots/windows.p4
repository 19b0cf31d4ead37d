// Written by `weft subs compile`.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type_;
}

header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    bit<16> type_;
}

header ipv4_t {
    bit<4> version;
    bit<4> header_length;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<1> reserved;
    bit<1> dont_fragment;
    bit<1> more_fragments;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header ipv6_t {
    bit<4> version;
    bit<6> dscp;
    bit<2> ecn;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    bit<128> source;
    bit<128> destination;
}

header udp_t {
    bit<16> source_port;
    bit<16> destination_port;
    bit<16> length;
    bit<16> checksum;
}

header one_t {
    bit<3> kind;
    bit<5> size;
    bit<8> address;
    bit<16> name;
    bit<7> fill;
    bit<1> last;
    bit<64> wide;
    bit<64> rest;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
    ipv6_t ipv6;
    udp_t udp;
    one_t one;
}

struct meta_t {
    bit<64> value_0;
    bit<64> value_1;
    bit<48> number;
    bit<48> known;
    bit<1> fresh;
    bit<6> current_0;
    bit<1> note_0_0_called;
    bit<64> note_0_0_argument_0;
    bit<32> note_0_0_argument_1;
    bit<128> note_0_0_argument_2;
    bit<1> note_1_0_called;
    bit<64> note_1_0_argument_0;
    bit<32> note_1_0_argument_1;
    bit<128> note_1_0_argument_2;
}

parser SwitchParser(packet_in packet, out headers_t hdr, inout meta_t meta,
        inout standard_metadata_t standard_metadata) {
    state start {
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type_) {
            0x8100: parse_vlan;
            0x800: parse_ipv4;
            0x86dd: parse_ipv6;
            default: accept;
        }
    }
    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type_) {
            0x800: parse_ipv4;
            0x86dd: parse_ipv6;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.header_length, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0x5, 0x0, 0x11): parse_udp;
            default: accept;
        }
    }
    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            0x11: parse_udp;
            default: accept;
        }
    }
    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.destination_port) {
            0x7: parse_one;
            default: accept;
        }
    }
    state parse_one {
        packet.extract(hdr.one);
        transition accept;
    }
}

control SwitchVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}

control SwitchIngress(inout headers_t hdr, inout meta_t meta,
        inout standard_metadata_t standard_metadata) {
    register<bit<48>>(1) window_0_number;
    register<bit<64>>(1) window_0;
    register<bit<48>>(1) window_1_number;
    register<bit<64>>(1) window_1;
    // Leaves the message alone.
    @id(0x01000001) action nothing() {
    }
    // Sends the packet nowhere.
    @id(0x01000002) action discard() {
        mark_to_drop(standard_metadata);
    }
    // Sends the packet to one port.
    @id(0x01000003) action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    // Sends the packet to the ports of a group.
    @id(0x01000004) action multicast(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    // Takes the message to a state.
    @id(0x01000005) action go_0(bit<6> next) {
        meta.current_0 = next;
    }
    // Takes the message into a window.
    @id(0x01000006) action take_0_0() {
        meta.number = (bit<48>)((bit<48>)((bit<128>)((bit<128>)standard_metadata.ingress_global_timestamp * 128w0x147ae147ae148) >> 8w0x37) + 48w0x1);
        window_0_number.read(meta.known, 0);
        meta.fresh = ((meta.known == meta.number) ? 1w0x0 : 1w0x1);
        window_0_number.write(0, meta.number);
        window_0.read(meta.value_0, 0);
        meta.value_0 = ((meta.fresh == 1w0x1) ? 64w0x1 : (bit<64>)(meta.value_0 + 64w0x1));
        window_0.write(0, meta.value_0);
    }
    // Takes the message into a window.
    @id(0x01000007) action take_1_0() {
        meta.number = (bit<48>)((bit<48>)((bit<128>)((bit<128>)standard_metadata.ingress_global_timestamp * 128w0x147ae147ae148) >> 8w0x37) + 48w0x1);
        window_1_number.read(meta.known, 0);
        meta.fresh = ((meta.known == meta.number) ? 1w0x0 : 1w0x1);
        window_1_number.write(0, meta.number);
        window_1.read(meta.value_1, 0);
        meta.value_1 = ((meta.fresh == 1w0x1) ? 64w0x1 : (bit<64>)(meta.value_1 + 64w0x1));
        window_1.write(0, meta.value_1);
    }
    // An application's action: what it does is written here.
    @id(0x01000008) action call_note_0_0(bit<64> argument_0, bit<32> argument_1, bit<128> argument_2) {
        meta.note_0_0_called = 1w0x1;
        meta.note_0_0_argument_0 = argument_0;
        meta.note_0_0_argument_1 = argument_1;
        meta.note_0_0_argument_2 = argument_2;
    }
    // An application's action: what it does is written here.
    @id(0x01000009) action call_note_1_0(bit<64> argument_0, bit<32> argument_1, bit<128> argument_2) {
        meta.note_1_0_called = 1w0x1;
        meta.note_1_0_argument_0 = argument_0;
        meta.note_1_0_argument_1 = argument_1;
        meta.note_1_0_argument_2 = argument_2;
    }
    @id(0x02000001) table begin_0 {
        actions = {
            go_0;
        }
        default_action = go_0(0x0);
    }
    @id(0x02000002) table has_one_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.one.isValid(): exact @name("hdr.one.$valid$");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x02000003) table one_kind_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.one.kind: exact @name("hdr.one.kind");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    @id(0x02000004) table one_kind_0_else {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    @id(0x02000005) table one_size_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.one.size: range @name("hdr.one.size");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x02000006) table one_size_0_else {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x02000007) table one_address_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.one.address: lpm @name("hdr.one.address");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 8;
    }
    @id(0x02000008) table update_0_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            take_0_0;
            nothing;
        }
        default_action = nothing();
        size = 20;
    }
    @id(0x02000009) table update_1_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            take_1_0;
            nothing;
        }
        default_action = nothing();
        size = 20;
    }
    @id(0x0200000a) table window_0_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            meta.value_0: range @name("meta.value_0");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 4;
    }
    @id(0x0200000b) table window_0_0_else {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 4;
    }
    @id(0x0200000c) table window_1_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            meta.value_1: range @name("meta.value_1");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 6;
    }
    @id(0x0200000d) table window_1_0_else {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 6;
    }
    @id(0x0200000e) table end_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            forward;
            multicast;
            discard;
        }
        default_action = discard();
        size = 10;
    }
    @id(0x0200000f) table note_0_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            call_note_0_0;
            nothing;
        }
        default_action = nothing();
        size = 9;
    }
    @id(0x02000010) table note_1_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            call_note_1_0;
            nothing;
        }
        default_action = nothing();
        size = 9;
    }
    apply {
        begin_0.apply();
        has_one_0.apply();
        if (!one_kind_0.apply().hit) {
            one_kind_0_else.apply();
        }
        if (!one_size_0.apply().hit) {
            one_size_0_else.apply();
        }
        one_address_0.apply();
        update_0_0.apply();
        update_1_0.apply();
        if (!window_0_0.apply().hit) {
            window_0_0_else.apply();
        }
        if (!window_1_0.apply().hit) {
            window_1_0_else.apply();
        }
        end_0.apply();
        note_0_0.apply();
        note_1_0.apply();
    }
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta,
        inout standard_metadata_t standard_metadata) {
    // No packet goes back to where it came from.
    @id(0x0100000a) action drop_back() {
        mark_to_drop(standard_metadata);
    }
    apply {
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop_back();
        }
    }
}

control SwitchUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.one);
    }
}

V1Switch(SwitchParser(), SwitchVerify(), SwitchIngress(), SwitchEgress(), SwitchUpdate(),
        SwitchDeparser()) main;
