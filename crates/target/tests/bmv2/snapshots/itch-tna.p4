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

header mold_t {
    bit<80> unused_0;
    bit<64> sequence;
    bit<16> count;
}

header length_t {
    bit<16> bytes;
}

header add_order_t {
    bit<152> unused_0;
    bit<8> side;
    bit<32> shares;
    bit<64> stock;
    bit<32> price;
}

header trade_t {
    bit<160> unused_0;
    bit<32> shares;
    bit<64> stock;
    bit<32> price;
    bit<64> unused_288;
}

header rest_32_t {
    bit<256> data;
}

header rest_16_t {
    bit<128> data;
}

header rest_8_t {
    bit<64> data;
}

header rest_4_t {
    bit<32> data;
}

header rest_2_t {
    bit<16> data;
}

header rest_1_t {
    bit<8> data;
}

header bridge_t {
    bit<7> before_port;
    bit<9> ingress_port;
    bit<3> ports_0_0;
    bit<3> ports_1_0;
    bit<1> too_many;
    bit<1> padding;
}

struct headers_t {
    bridge_t bridge;
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
    ipv6_t ipv6;
    udp_t udp;
    mold_t mold;
    length_t length_0;
    add_order_t add_order_0;
    trade_t trade_0;
    rest_32_t rest_0_32;
    rest_16_t rest_0_16;
    rest_8_t rest_0_8;
    rest_4_t rest_0_4;
    rest_2_t rest_0_2;
    rest_1_t rest_0_1;
    length_t length_1;
    add_order_t add_order_1;
    trade_t trade_1;
    rest_32_t rest_1_32;
    rest_16_t rest_1_16;
    rest_8_t rest_1_8;
    rest_4_t rest_1_4;
    rest_2_t rest_1_2;
    rest_1_t rest_1_1;
}

struct meta_t {
    bit<4> current_0;
    bit<4> current_1;
    bit<3> united_0_0_0;
    bit<16> pruned;
    bit<16> removed;
    bit<16> lengths;
    bit<1> changed;
    bit<3> mine_0;
    bit<3> shared_0_0;
    bit<3> shared_1_0;
}

parser IngressParser(packet_in packet, out headers_t hdr, out meta_t meta,
        out ingress_intrinsic_metadata_t ig_intr_md) {
    ParserCounter() counter;
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        hdr.bridge.setValid();
        meta.current_0 = 4w0x0;
        meta.current_1 = 4w0x0;
        meta.united_0_0_0 = 3w0x0;
        meta.pruned = 16w0x0;
        meta.removed = 16w0x0;
        meta.lengths = 16w0x0;
        meta.changed = 1w0x0;
        meta.mine_0 = 3w0x0;
        meta.shared_0_0 = 3w0x0;
        meta.shared_1_0 = 3w0x0;
        hdr.bridge.too_many = 1w0x0;
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
            0x6720: parse_mold;
            default: accept;
        }
    }
    state parse_mold {
        packet.extract(hdr.mold);
        transition select(hdr.mold.count) {
            0x0: accept;
            0x1: messages_1;
            0x2: messages_2;
            default: too_many;
        }
    }
    state messages_1 {
        counter.set(8w1);
        transition message_0;
    }
    state messages_2 {
        counter.set(8w2);
        transition message_0;
    }
    state message_0 {
        packet.extract(hdr.length_0);
        counter.decrement(8w1);
        transition select(hdr.length_0.bytes) {
            0x0 &&& 0xffe0: other_0;
            0x20 &&& 0xfffc: other_0;
            default: kind_0;
        }
    }
    state kind_0 {
        transition select(hdr.length_0.bytes, packet.lookahead<bit<8>>()[7:0]) {
            (0x24, 0x41): message_0_0;
            (_, 0x41): too_many;
            (0x2c, 0x50): message_0_1;
            (0x24 &&& 0xfffc, 0x50): other_0;
            (0x28 &&& 0xfffc, 0x50): other_0;
            (_, 0x50): too_many;
            default: other_0;
        }
    }
    state message_0_0 {
        packet.extract(hdr.add_order_0);
        transition batch_1;
    }
    state message_0_1 {
        packet.extract(hdr.trade_0);
        transition batch_1;
    }
    state other_0 {
        transition select(hdr.length_0.bytes) {
            0x0 &&& 0xffc0: piece_0_32;
            default: too_many;
        }
    }
    state piece_0_32 {
        transition select(hdr.length_0.bytes) {
            0x20 &&& 0x20: take_0_32;
            default: piece_0_16;
        }
    }
    state take_0_32 {
        packet.extract(hdr.rest_0_32);
        transition piece_0_16;
    }
    state piece_0_16 {
        transition select(hdr.length_0.bytes) {
            0x10 &&& 0x10: take_0_16;
            default: piece_0_8;
        }
    }
    state take_0_16 {
        packet.extract(hdr.rest_0_16);
        transition piece_0_8;
    }
    state piece_0_8 {
        transition select(hdr.length_0.bytes) {
            0x8 &&& 0x8: take_0_8;
            default: piece_0_4;
        }
    }
    state take_0_8 {
        packet.extract(hdr.rest_0_8);
        transition piece_0_4;
    }
    state piece_0_4 {
        transition select(hdr.length_0.bytes) {
            0x4 &&& 0x4: take_0_4;
            default: piece_0_2;
        }
    }
    state take_0_4 {
        packet.extract(hdr.rest_0_4);
        transition piece_0_2;
    }
    state piece_0_2 {
        transition select(hdr.length_0.bytes) {
            0x2 &&& 0x2: take_0_2;
            default: piece_0_1;
        }
    }
    state take_0_2 {
        packet.extract(hdr.rest_0_2);
        transition piece_0_1;
    }
    state piece_0_1 {
        transition select(hdr.length_0.bytes) {
            0x1 &&& 0x1: take_0_1;
            default: batch_1;
        }
    }
    state take_0_1 {
        packet.extract(hdr.rest_0_1);
        transition batch_1;
    }
    state batch_1 {
        transition select(counter.is_zero()) {
            true: accept;
            default: message_1;
        }
    }
    state message_1 {
        packet.extract(hdr.length_1);
        counter.decrement(8w1);
        transition select(hdr.length_1.bytes) {
            0x0 &&& 0xffe0: other_1;
            0x20 &&& 0xfffc: other_1;
            default: kind_1;
        }
    }
    state kind_1 {
        transition select(hdr.length_1.bytes, packet.lookahead<bit<8>>()[7:0]) {
            (0x24, 0x41): message_1_0;
            (_, 0x41): too_many;
            (0x2c, 0x50): message_1_1;
            (0x24 &&& 0xfffc, 0x50): other_1;
            (0x28 &&& 0xfffc, 0x50): other_1;
            (_, 0x50): too_many;
            default: other_1;
        }
    }
    state message_1_0 {
        packet.extract(hdr.add_order_1);
        transition accept;
    }
    state message_1_1 {
        packet.extract(hdr.trade_1);
        transition accept;
    }
    state other_1 {
        transition select(hdr.length_1.bytes) {
            0x0 &&& 0xffc0: piece_1_32;
            default: too_many;
        }
    }
    state piece_1_32 {
        transition select(hdr.length_1.bytes) {
            0x20 &&& 0x20: take_1_32;
            default: piece_1_16;
        }
    }
    state take_1_32 {
        packet.extract(hdr.rest_1_32);
        transition piece_1_16;
    }
    state piece_1_16 {
        transition select(hdr.length_1.bytes) {
            0x10 &&& 0x10: take_1_16;
            default: piece_1_8;
        }
    }
    state take_1_16 {
        packet.extract(hdr.rest_1_16);
        transition piece_1_8;
    }
    state piece_1_8 {
        transition select(hdr.length_1.bytes) {
            0x8 &&& 0x8: take_1_8;
            default: piece_1_4;
        }
    }
    state take_1_8 {
        packet.extract(hdr.rest_1_8);
        transition piece_1_4;
    }
    state piece_1_4 {
        transition select(hdr.length_1.bytes) {
            0x4 &&& 0x4: take_1_4;
            default: piece_1_2;
        }
    }
    state take_1_4 {
        packet.extract(hdr.rest_1_4);
        transition piece_1_2;
    }
    state piece_1_2 {
        transition select(hdr.length_1.bytes) {
            0x2 &&& 0x2: take_1_2;
            default: piece_1_1;
        }
    }
    state take_1_2 {
        packet.extract(hdr.rest_1_2);
        transition piece_1_1;
    }
    state piece_1_1 {
        transition select(hdr.length_1.bytes) {
            0x1 &&& 0x1: take_1_1;
            default: accept;
        }
    }
    state take_1_1 {
        packet.extract(hdr.rest_1_1);
        transition accept;
    }
    state too_many {
        hdr.bridge.too_many = 1w0x1;
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
        in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
        inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
        inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
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
    action go_0(bit<4> next) {
        meta.current_0 = next;
    }
    // The ports that the message goes to.
    action ports_0(bit<3> word_0) {
        hdr.bridge.ports_0_0 = word_0;
    }
    // Takes the message to a state.
    action go_1(bit<4> next) {
        meta.current_1 = next;
    }
    // The ports that the message goes to.
    action ports_1(bit<3> word_0) {
        hdr.bridge.ports_1_0 = word_0;
    }
    // Messages that are not there go nowhere.
    action clear() {
        hdr.bridge.ports_0_0 = 3w0x0;
        hdr.bridge.ports_1_0 = 3w0x0;
    }
    // The packet goes where any of its messages goes.
    action unite_0() {
        meta.united_0_0_0 = (hdr.bridge.ports_0_0 | hdr.bridge.ports_1_0);
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
    table has_add_order_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.add_order_0.isValid(): exact @name("hdr.add_order_0.$valid");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    table has_trade_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.trade_0.isValid(): exact @name("hdr.trade_0.$valid");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    table add_order_stock_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.add_order_0.stock: exact @name("hdr.add_order_0.stock");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table add_order_stock_0_else {
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
    table add_order_price_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.add_order_0.price: ternary @name("hdr.add_order_0.price");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 28;
    }
    table trade_stock_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.trade_0.stock: exact @name("hdr.trade_0.stock");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table trade_stock_0_else {
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
    table end_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            ports_0;
        }
        default_action = ports_0(0x0);
        size = 3;
    }
    table begin_1 {
        actions = {
            go_1;
        }
        default_action = go_1(0x0);
    }
    table has_add_order_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.add_order_1.isValid(): exact @name("hdr.add_order_1.$valid");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    table has_trade_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.trade_1.isValid(): exact @name("hdr.trade_1.$valid");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    table add_order_stock_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.add_order_1.stock: exact @name("hdr.add_order_1.stock");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table add_order_stock_1_else {
        key = {
            meta.current_1: exact @name("meta.current_1");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table add_order_price_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.add_order_1.price: ternary @name("hdr.add_order_1.price");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 28;
    }
    table trade_stock_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.trade_1.stock: exact @name("hdr.trade_1.stock");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table trade_stock_1_else {
        key = {
            meta.current_1: exact @name("meta.current_1");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table end_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
        }
        actions = {
            ports_1;
        }
        default_action = ports_1(0x0);
        size = 3;
    }
    table spread {
        key = {
            meta.united_0_0_0: exact @name("meta.united_0_0_0");
        }
        actions = {
            forward;
            multicast;
            discard;
        }
        default_action = multicast(0x2);
        size = 5;
    }
    table everywhere {
        actions = {
            forward;
            multicast;
            discard;
        }
        default_action = multicast(0x2);
    }
    apply {
        arrive();
        clear();
        if (hdr.bridge.too_many == 1w0x1) {
            everywhere.apply();
        } else {
            begin_0.apply();
            has_add_order_0.apply();
            has_trade_0.apply();
            if (!add_order_stock_0.apply().hit) {
                add_order_stock_0_else.apply();
            }
            add_order_price_0.apply();
            if (!trade_stock_0.apply().hit) {
                trade_stock_0_else.apply();
            }
            end_0.apply();
            if (hdr.length_1.isValid()) {
                begin_1.apply();
                has_add_order_1.apply();
                has_trade_1.apply();
                if (!add_order_stock_1.apply().hit) {
                    add_order_stock_1_else.apply();
                }
                add_order_price_1.apply();
                if (!trade_stock_1.apply().hit) {
                    trade_stock_1_else.apply();
                }
                end_1.apply();
            }
            unite_0();
            spread.apply();
        }
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in meta_t meta,
        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr);
    }
}

parser EgressParser(packet_in packet, out headers_t hdr, out meta_t meta,
        out egress_intrinsic_metadata_t eg_intr_md) {
    ParserCounter() counter;
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        meta.current_0 = 4w0x0;
        meta.current_1 = 4w0x0;
        meta.united_0_0_0 = 3w0x0;
        meta.pruned = 16w0x0;
        meta.removed = 16w0x0;
        meta.lengths = 16w0x0;
        meta.changed = 1w0x0;
        meta.mine_0 = 3w0x0;
        meta.shared_0_0 = 3w0x0;
        meta.shared_1_0 = 3w0x0;
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
            0x6720: parse_mold;
            default: accept;
        }
    }
    state parse_mold {
        packet.extract(hdr.mold);
        transition select(hdr.mold.count) {
            0x0: accept;
            0x1: messages_1;
            0x2: messages_2;
            default: too_many;
        }
    }
    state messages_1 {
        counter.set(8w1);
        transition message_0;
    }
    state messages_2 {
        counter.set(8w2);
        transition message_0;
    }
    state message_0 {
        packet.extract(hdr.length_0);
        counter.decrement(8w1);
        transition select(hdr.length_0.bytes) {
            0x0 &&& 0xffe0: other_0;
            0x20 &&& 0xfffc: other_0;
            default: kind_0;
        }
    }
    state kind_0 {
        transition select(hdr.length_0.bytes, packet.lookahead<bit<8>>()[7:0]) {
            (0x24, 0x41): message_0_0;
            (_, 0x41): too_many;
            (0x2c, 0x50): message_0_1;
            (0x24 &&& 0xfffc, 0x50): other_0;
            (0x28 &&& 0xfffc, 0x50): other_0;
            (_, 0x50): too_many;
            default: other_0;
        }
    }
    state message_0_0 {
        packet.extract(hdr.add_order_0);
        transition batch_1;
    }
    state message_0_1 {
        packet.extract(hdr.trade_0);
        transition batch_1;
    }
    state other_0 {
        transition select(hdr.length_0.bytes) {
            0x0 &&& 0xffc0: piece_0_32;
            default: too_many;
        }
    }
    state piece_0_32 {
        transition select(hdr.length_0.bytes) {
            0x20 &&& 0x20: take_0_32;
            default: piece_0_16;
        }
    }
    state take_0_32 {
        packet.extract(hdr.rest_0_32);
        transition piece_0_16;
    }
    state piece_0_16 {
        transition select(hdr.length_0.bytes) {
            0x10 &&& 0x10: take_0_16;
            default: piece_0_8;
        }
    }
    state take_0_16 {
        packet.extract(hdr.rest_0_16);
        transition piece_0_8;
    }
    state piece_0_8 {
        transition select(hdr.length_0.bytes) {
            0x8 &&& 0x8: take_0_8;
            default: piece_0_4;
        }
    }
    state take_0_8 {
        packet.extract(hdr.rest_0_8);
        transition piece_0_4;
    }
    state piece_0_4 {
        transition select(hdr.length_0.bytes) {
            0x4 &&& 0x4: take_0_4;
            default: piece_0_2;
        }
    }
    state take_0_4 {
        packet.extract(hdr.rest_0_4);
        transition piece_0_2;
    }
    state piece_0_2 {
        transition select(hdr.length_0.bytes) {
            0x2 &&& 0x2: take_0_2;
            default: piece_0_1;
        }
    }
    state take_0_2 {
        packet.extract(hdr.rest_0_2);
        transition piece_0_1;
    }
    state piece_0_1 {
        transition select(hdr.length_0.bytes) {
            0x1 &&& 0x1: take_0_1;
            default: batch_1;
        }
    }
    state take_0_1 {
        packet.extract(hdr.rest_0_1);
        transition batch_1;
    }
    state batch_1 {
        transition select(counter.is_zero()) {
            true: accept;
            default: message_1;
        }
    }
    state message_1 {
        packet.extract(hdr.length_1);
        counter.decrement(8w1);
        transition select(hdr.length_1.bytes) {
            0x0 &&& 0xffe0: other_1;
            0x20 &&& 0xfffc: other_1;
            default: kind_1;
        }
    }
    state kind_1 {
        transition select(hdr.length_1.bytes, packet.lookahead<bit<8>>()[7:0]) {
            (0x24, 0x41): message_1_0;
            (_, 0x41): too_many;
            (0x2c, 0x50): message_1_1;
            (0x24 &&& 0xfffc, 0x50): other_1;
            (0x28 &&& 0xfffc, 0x50): other_1;
            (_, 0x50): too_many;
            default: other_1;
        }
    }
    state message_1_0 {
        packet.extract(hdr.add_order_1);
        transition accept;
    }
    state message_1_1 {
        packet.extract(hdr.trade_1);
        transition accept;
    }
    state other_1 {
        transition select(hdr.length_1.bytes) {
            0x0 &&& 0xffc0: piece_1_32;
            default: too_many;
        }
    }
    state piece_1_32 {
        transition select(hdr.length_1.bytes) {
            0x20 &&& 0x20: take_1_32;
            default: piece_1_16;
        }
    }
    state take_1_32 {
        packet.extract(hdr.rest_1_32);
        transition piece_1_16;
    }
    state piece_1_16 {
        transition select(hdr.length_1.bytes) {
            0x10 &&& 0x10: take_1_16;
            default: piece_1_8;
        }
    }
    state take_1_16 {
        packet.extract(hdr.rest_1_16);
        transition piece_1_8;
    }
    state piece_1_8 {
        transition select(hdr.length_1.bytes) {
            0x8 &&& 0x8: take_1_8;
            default: piece_1_4;
        }
    }
    state take_1_8 {
        packet.extract(hdr.rest_1_8);
        transition piece_1_4;
    }
    state piece_1_4 {
        transition select(hdr.length_1.bytes) {
            0x4 &&& 0x4: take_1_4;
            default: piece_1_2;
        }
    }
    state take_1_4 {
        packet.extract(hdr.rest_1_4);
        transition piece_1_2;
    }
    state piece_1_2 {
        transition select(hdr.length_1.bytes) {
            0x2 &&& 0x2: take_1_2;
            default: piece_1_1;
        }
    }
    state take_1_2 {
        packet.extract(hdr.rest_1_2);
        transition piece_1_1;
    }
    state piece_1_1 {
        transition select(hdr.length_1.bytes) {
            0x1 &&& 0x1: take_1_1;
            default: accept;
        }
    }
    state take_1_1 {
        packet.extract(hdr.rest_1_1);
        transition accept;
    }
    state too_many {
        transition accept;
    }
}

control Egress(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg_intr_md,
        in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
        inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
        inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    // Leaves the copy alone.
    action nothing() {
    }
    // No message is for this port.
    action drop_copy() {
        eg_dprsr_md.drop_ctl = 3w1;
    }
    // The copy's own port.
    action port_bit(bit<3> word_0) {
        meta.mine_0 = word_0;
    }
    // All messages are there yet.
    action none_pruned() {
        meta.pruned = 16w0x0;
        meta.removed = 16w0x0;
        meta.lengths = 16w0x0;
    }
    // Takes the message out of this copy.
    action prune_0() {
        meta.pruned = (bit<16>)(meta.pruned + 16w0x1);
        meta.removed = (bit<16>)(meta.removed + hdr.length_0.bytes);
        meta.lengths = (bit<16>)(meta.lengths + 16w0x2);
        hdr.length_0.setInvalid();
        hdr.add_order_0.setInvalid();
        hdr.trade_0.setInvalid();
        hdr.rest_0_32.setInvalid();
        hdr.rest_0_16.setInvalid();
        hdr.rest_0_8.setInvalid();
        hdr.rest_0_4.setInvalid();
        hdr.rest_0_2.setInvalid();
        hdr.rest_0_1.setInvalid();
    }
    // Takes the message out of this copy.
    action prune_1() {
        meta.pruned = (bit<16>)(meta.pruned + 16w0x1);
        meta.removed = (bit<16>)(meta.removed + hdr.length_1.bytes);
        meta.lengths = (bit<16>)(meta.lengths + 16w0x2);
        hdr.length_1.setInvalid();
        hdr.add_order_1.setInvalid();
        hdr.trade_1.setInvalid();
        hdr.rest_1_32.setInvalid();
        hdr.rest_1_16.setInvalid();
        hdr.rest_1_8.setInvalid();
        hdr.rest_1_4.setInvalid();
        hdr.rest_1_2.setInvalid();
        hdr.rest_1_1.setInvalid();
    }
    // Whether messages go to the copy's own port.
    action meet() {
        meta.shared_0_0 = (hdr.bridge.ports_0_0 & meta.mine_0);
        meta.shared_1_0 = (hdr.bridge.ports_1_0 & meta.mine_0);
    }
    // The bytes that are gone, with the lengths in front.
    action total() {
        meta.removed = (bit<16>)(meta.removed + meta.lengths);
    }
    // Makes count and lengths right.
    action fix() {
        meta.changed = 1w0x1;
        hdr.mold.count = (bit<16>)(hdr.mold.count - meta.pruned);
        hdr.ipv4.total_length = (bit<16>)(hdr.ipv4.total_length - meta.removed);
        hdr.ipv6.payload_length = (bit<16>)(hdr.ipv6.payload_length - meta.removed);
        hdr.udp.length = (bit<16>)(hdr.udp.length - meta.removed);
        hdr.udp.checksum = 16w0x0;
    }
    // No packet goes back to where it came from.
    action drop_back() {
        eg_dprsr_md.drop_ctl = 3w1;
    }
    table own_port {
        key = {
            eg_intr_md.egress_port: exact @name("eg_intr_md.egress_port");
        }
        actions = {
            port_bit;
        }
        default_action = port_bit(0x0);
        size = 3;
    }
    table keep_headers {
        key = {
            meta.shared_0_0: exact @name("meta.shared_0_0");
        }
        actions = {
            drop_copy;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table keep_0 {
        key = {
            meta.shared_0_0: exact @name("meta.shared_0_0");
        }
        actions = {
            prune_0;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    table keep_1 {
        key = {
            meta.shared_1_0: exact @name("meta.shared_1_0");
        }
        actions = {
            prune_1;
            nothing;
        }
        default_action = nothing();
        size = 1;
    }
    apply {
        if (eg_intr_md.egress_port == hdr.bridge.ingress_port) {
            drop_back();
        } else {
            if (hdr.bridge.too_many == 1w0x0) {
                own_port.apply();
                none_pruned();
                meet();
                if (hdr.length_0.isValid()) {
                    keep_0.apply();
                } else {
                    keep_headers.apply();
                }
                if (hdr.length_1.isValid()) {
                    keep_1.apply();
                }
                if (meta.pruned != 16w0x0) {
                    if (meta.pruned == hdr.mold.count) {
                        drop_copy();
                    } else {
                        total();
                        fix();
                    }
                }
            }
        }
    }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in meta_t meta,
        in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() ipv4_checksum;
    apply {
        if (meta.changed == 1w1) {
            hdr.ipv4.checksum = ipv4_checksum.update({ hdr.ipv4.version, hdr.ipv4.header_length, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination });
        }
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.mold);
        packet.emit(hdr.length_0);
        packet.emit(hdr.add_order_0);
        packet.emit(hdr.trade_0);
        packet.emit(hdr.rest_0_32);
        packet.emit(hdr.rest_0_16);
        packet.emit(hdr.rest_0_8);
        packet.emit(hdr.rest_0_4);
        packet.emit(hdr.rest_0_2);
        packet.emit(hdr.rest_0_1);
        packet.emit(hdr.length_1);
        packet.emit(hdr.add_order_1);
        packet.emit(hdr.trade_1);
        packet.emit(hdr.rest_1_32);
        packet.emit(hdr.rest_1_16);
        packet.emit(hdr.rest_1_8);
        packet.emit(hdr.rest_1_4);
        packet.emit(hdr.rest_1_2);
        packet.emit(hdr.rest_1_1);
    }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;

Switch(pipe) main;
