// Written by `weft subs compile`.
#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

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

header bridge_t {
    bit<7> before_port;
    bit<9> ingress_port;
}

struct headers_t {
    bridge_t bridge;
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
    ipv6_t ipv6;
    udp_t udp;
    one_t one;
}

struct meta_t {
    bit<32> value_0;
    bit<32> number_0;
    bit<32> value_1;
    bit<32> number_1;
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

struct window_t {
    bit<32> number;
    bit<32> value;
}

parser IngressParser(packet_in packet, out headers_t hdr, out meta_t meta,
        out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        hdr.bridge.setValid();
        meta.value_0 = 32w0x0;
        meta.number_0 = 32w0x0;
        meta.value_1 = 32w0x0;
        meta.number_1 = 32w0x0;
        meta.current_0 = 6w0x0;
        meta.note_0_0_called = 1w0x0;
        meta.note_0_0_argument_0 = 64w0x0;
        meta.note_0_0_argument_1 = 32w0x0;
        meta.note_0_0_argument_2 = 128w0x0;
        meta.note_1_0_called = 1w0x0;
        meta.note_1_0_argument_0 = 64w0x0;
        meta.note_1_0_argument_1 = 32w0x0;
        meta.note_1_0_argument_2 = 128w0x0;
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

control Ingress(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Register<window_t, bit<1>>(1, { 0, 0 }) window_0;
    RegisterAction<window_t, bit<1>, bit<32>>(window_0) into_window_0 = {
        void apply(inout window_t window, out bit<32> result) {
            if (window.number != meta.number_0) {
                window.value = 32w1;
            } else {
                window.value = window.value |+| 32w1;
            }
            window.number = meta.number_0;
            result = window.value;
        }
    };
    Register<window_t, bit<1>>(1, { 0, 0 }) window_1;
    RegisterAction<window_t, bit<1>, bit<32>>(window_1) into_window_1 = {
        void apply(inout window_t window, out bit<32> result) {
            if (window.number != meta.number_1) {
                window.value = 32w1;
            } else {
                window.value = window.value |+| 32w1;
            }
            window.number = meta.number_1;
            result = window.value;
        }
    };
    // Leaves the message alone.
    action nothing() {
    }
    // Sends the packet nowhere.
    action discard() {
        ig_dprsr_md.drop_ctl = 3w1;
    }
    // Sends the packet to one port.
    action forward(bit<9> port) {
        ig_tm_md.ucast_egress_port = port;
    }
    // Sends the packet to the ports of a group.
    action multicast(bit<16> group) {
        ig_tm_md.mcast_grp_a = group;
    }
    // Takes the message to a state.
    action go_0(bit<6> next) {
        meta.current_0 = next;
    }
    // The number of the window that the message falls into, and its value.
    action prepare_0_0() {
        meta.number_0 = ig_prsr_md.global_tstamp[44:13];
    }
    // Takes the message into a window.
    action take_0_0() {
        meta.value_0 = into_window_0.execute(1w0);
    }
    // The number of the window that the message falls into, and its value.
    action prepare_1_0() {
        meta.number_1 = ig_prsr_md.global_tstamp[44:13];
    }
    // Takes the message into a window.
    action take_1_0() {
        meta.value_1 = into_window_1.execute(1w0);
    }
    // An application's action: what it does is written here.
    action call_note_0_0(bit<64> argument_0, bit<32> argument_1, bit<128> argument_2) {
        meta.note_0_0_called = 1w0x1;
        meta.note_0_0_argument_0 = argument_0;
        meta.note_0_0_argument_1 = argument_1;
        meta.note_0_0_argument_2 = argument_2;
    }
    // An application's action: what it does is written here.
    action call_note_1_0(bit<64> argument_0, bit<32> argument_1, bit<128> argument_2) {
        meta.note_1_0_called = 1w0x1;
        meta.note_1_0_argument_0 = argument_0;
        meta.note_1_0_argument_1 = argument_1;
        meta.note_1_0_argument_2 = argument_2;
    }
    // Tells egress where the packet came in.
    action arrive() {
        hdr.bridge.ingress_port = ig_intr_md.ingress_port;
    }
    table begin_0 {
        actions = {
            go_0;
        }
        default_action = go_0(0x0);
    }
    table has_one_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.one.isValid(): exact @name("hdr.one.$valid");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    table one_kind_0 {
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
    table one_kind_0_else {
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
    table one_size_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.one.size: range @name("hdr.one.size");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 4;
    }
    table one_address_0 {
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
    table update_0_0 {
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
    table update_1_0 {
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
    table window_0_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            meta.value_0: ternary @name("meta.value_0");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 8;
    }
    table window_1_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            meta.value_1: ternary @name("meta.value_1");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 18;
    }
    table end_0 {
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
    table note_0_0 {
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
    table note_1_0 {
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
        arrive();
        prepare_1_0();
        prepare_0_0();
        begin_0.apply();
        has_one_0.apply();
        if (!one_kind_0.apply().hit) {
            one_kind_0_else.apply();
        }
        one_size_0.apply();
        one_address_0.apply();
        update_0_0.apply();
        update_1_0.apply();
        window_0_0.apply();
        window_1_0.apply();
        end_0.apply();
        note_0_0.apply();
        note_1_0.apply();
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in meta_t meta,
        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

struct empty_t {
}

struct bridged_t {
    bridge_t bridge;
}

parser EgressParser(packet_in packet, out bridged_t hdr, out empty_t meta,
        out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        transition accept;
    }
}

control Egress(inout bridged_t hdr, inout empty_t meta, in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
        inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    // No packet goes back to where it came from.
    action drop_back() {
        eg_dprsr_md.drop_ctl = 3w1;
    }
    apply {
        if (eg_intr_md.egress_port == hdr.bridge.ingress_port) {
            drop_back();
        }
    }
}

control EgressDeparser(packet_out packet, inout bridged_t hdr, in empty_t meta,
        in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply {
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;
