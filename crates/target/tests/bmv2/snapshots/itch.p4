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

header rest_t {
    varbit<12000> data;
}

struct headers_t {
    ethernet_t ethernet;
    vlan_t vlan;
    ipv4_t ipv4;
    ipv6_t ipv6;
    udp_t udp;
    mold_t mold;
    length_t length_0;
    add_order_t add_order_0;
    trade_t trade_0;
    rest_t rest_0;
    length_t length_1;
    add_order_t add_order_1;
    trade_t trade_1;
    rest_t rest_1;
}

struct meta_t {
    bit<4> current_0;
    bit<3> ports_0_0;
    bit<4> current_1;
    bit<3> ports_1_0;
    bit<1> too_many;
    bit<3> united_0_0_0;
    bit<16> pruned;
    bit<16> removed;
    bit<16> lengths;
    bit<1> changed;
    bit<3> mine_0;
    bit<3> shared_0_0;
    bit<3> shared_1_0;
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
            0x6720: parse_mold;
            default: accept;
        }
    }
    state parse_mold {
        packet.extract(hdr.mold);
        transition batch_0;
    }
    state batch_0 {
        transition select(hdr.mold.count) {
            0x0: accept;
            default: message_0;
        }
    }
    state message_0 {
        packet.extract(hdr.length_0);
        transition select(hdr.length_0.bytes) {
            0x0 &&& 0xffe0: other_0;
            0x20 &&& 0xfffc: other_0;
            default: kind_0;
        }
    }
    state kind_0 {
        transition select(hdr.length_0.bytes, packet.lookahead<bit<8>>()[7:0]) {
            (0x24 &&& 0xfffc, 0x41): message_0_0;
            (0x28 &&& 0xfff8, 0x41): message_0_0;
            (0x30 &&& 0xfff0, 0x41): message_0_0;
            (0x40 &&& 0xffc0, 0x41): message_0_0;
            (0x80 &&& 0xff80, 0x41): message_0_0;
            (0x100 &&& 0xff00, 0x41): message_0_0;
            (0x200 &&& 0xfe00, 0x41): message_0_0;
            (0x400 &&& 0xfc00, 0x41): message_0_0;
            (0x800 &&& 0xf800, 0x41): message_0_0;
            (0x1000 &&& 0xf000, 0x41): message_0_0;
            (0x2000 &&& 0xe000, 0x41): message_0_0;
            (0x4000 &&& 0xc000, 0x41): message_0_0;
            (0x8000 &&& 0x8000, 0x41): message_0_0;
            (0x2c &&& 0xfffc, 0x50): message_0_1;
            (0x30 &&& 0xfff0, 0x50): message_0_1;
            (0x40 &&& 0xffc0, 0x50): message_0_1;
            (0x80 &&& 0xff80, 0x50): message_0_1;
            (0x100 &&& 0xff00, 0x50): message_0_1;
            (0x200 &&& 0xfe00, 0x50): message_0_1;
            (0x400 &&& 0xfc00, 0x50): message_0_1;
            (0x800 &&& 0xf800, 0x50): message_0_1;
            (0x1000 &&& 0xf000, 0x50): message_0_1;
            (0x2000 &&& 0xe000, 0x50): message_0_1;
            (0x4000 &&& 0xc000, 0x50): message_0_1;
            (0x8000 &&& 0x8000, 0x50): message_0_1;
            default: other_0;
        }
    }
    state message_0_0 {
        packet.extract(hdr.add_order_0);
        packet.extract(hdr.rest_0, ((bit<32>)((bit<32>)hdr.length_0.bytes - 32w0x24) << 8w0x3));
        transition batch_1;
    }
    state message_0_1 {
        packet.extract(hdr.trade_0);
        packet.extract(hdr.rest_0, ((bit<32>)((bit<32>)hdr.length_0.bytes - 32w0x2c) << 8w0x3));
        transition batch_1;
    }
    state other_0 {
        packet.extract(hdr.rest_0, ((bit<32>)((bit<32>)hdr.length_0.bytes - 32w0x0) << 8w0x3));
        transition batch_1;
    }
    state batch_1 {
        transition select(hdr.mold.count) {
            0x1: accept;
            default: message_1;
        }
    }
    state message_1 {
        packet.extract(hdr.length_1);
        transition select(hdr.length_1.bytes) {
            0x0 &&& 0xffe0: other_1;
            0x20 &&& 0xfffc: other_1;
            default: kind_1;
        }
    }
    state kind_1 {
        transition select(hdr.length_1.bytes, packet.lookahead<bit<8>>()[7:0]) {
            (0x24 &&& 0xfffc, 0x41): message_1_0;
            (0x28 &&& 0xfff8, 0x41): message_1_0;
            (0x30 &&& 0xfff0, 0x41): message_1_0;
            (0x40 &&& 0xffc0, 0x41): message_1_0;
            (0x80 &&& 0xff80, 0x41): message_1_0;
            (0x100 &&& 0xff00, 0x41): message_1_0;
            (0x200 &&& 0xfe00, 0x41): message_1_0;
            (0x400 &&& 0xfc00, 0x41): message_1_0;
            (0x800 &&& 0xf800, 0x41): message_1_0;
            (0x1000 &&& 0xf000, 0x41): message_1_0;
            (0x2000 &&& 0xe000, 0x41): message_1_0;
            (0x4000 &&& 0xc000, 0x41): message_1_0;
            (0x8000 &&& 0x8000, 0x41): message_1_0;
            (0x2c &&& 0xfffc, 0x50): message_1_1;
            (0x30 &&& 0xfff0, 0x50): message_1_1;
            (0x40 &&& 0xffc0, 0x50): message_1_1;
            (0x80 &&& 0xff80, 0x50): message_1_1;
            (0x100 &&& 0xff00, 0x50): message_1_1;
            (0x200 &&& 0xfe00, 0x50): message_1_1;
            (0x400 &&& 0xfc00, 0x50): message_1_1;
            (0x800 &&& 0xf800, 0x50): message_1_1;
            (0x1000 &&& 0xf000, 0x50): message_1_1;
            (0x2000 &&& 0xe000, 0x50): message_1_1;
            (0x4000 &&& 0xc000, 0x50): message_1_1;
            (0x8000 &&& 0x8000, 0x50): message_1_1;
            default: other_1;
        }
    }
    state message_1_0 {
        packet.extract(hdr.add_order_1);
        packet.extract(hdr.rest_1, ((bit<32>)((bit<32>)hdr.length_1.bytes - 32w0x24) << 8w0x3));
        transition batch_2;
    }
    state message_1_1 {
        packet.extract(hdr.trade_1);
        packet.extract(hdr.rest_1, ((bit<32>)((bit<32>)hdr.length_1.bytes - 32w0x2c) << 8w0x3));
        transition batch_2;
    }
    state other_1 {
        packet.extract(hdr.rest_1, ((bit<32>)((bit<32>)hdr.length_1.bytes - 32w0x0) << 8w0x3));
        transition batch_2;
    }
    state batch_2 {
        transition select(hdr.mold.count) {
            0x2: accept;
            default: too_many;
        }
    }
    state too_many {
        meta.too_many = 1w0x1;
        transition accept;
    }
}

control SwitchVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}

control SwitchIngress(inout headers_t hdr, inout meta_t meta,
        inout standard_metadata_t standard_metadata) {
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
    @id(0x01000005) action go_0(bit<4> next) {
        meta.current_0 = next;
    }
    // The ports that the message goes to.
    @id(0x01000006) action ports_0(bit<3> word_0) {
        meta.ports_0_0 = word_0;
    }
    // Takes the message to a state.
    @id(0x01000007) action go_1(bit<4> next) {
        meta.current_1 = next;
    }
    // The ports that the message goes to.
    @id(0x01000008) action ports_1(bit<3> word_0) {
        meta.ports_1_0 = word_0;
    }
    // Messages that are not there go nowhere.
    @id(0x01000009) action clear() {
        meta.ports_0_0 = 3w0x0;
        meta.ports_1_0 = 3w0x0;
    }
    // The packet goes where any of its messages goes.
    @id(0x0100000a) action unite_0() {
        meta.united_0_0_0 = (meta.ports_0_0 | meta.ports_1_0);
    }
    @id(0x02000001) table begin_0 {
        actions = {
            go_0;
        }
        default_action = go_0(0x0);
    }
    @id(0x02000002) table has_add_order_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.add_order_0.isValid(): exact @name("hdr.add_order_0.$valid$");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x02000003) table has_trade_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.trade_0.isValid(): exact @name("hdr.trade_0.$valid$");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x02000004) table add_order_stock_0 {
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
    @id(0x02000005) table add_order_stock_0_else {
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
    @id(0x02000006) table add_order_price_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
            hdr.add_order_0.price: range @name("hdr.add_order_0.price");
        }
        actions = {
            go_0;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x02000007) table add_order_price_0_else {
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
    @id(0x02000008) table trade_stock_0 {
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
    @id(0x02000009) table trade_stock_0_else {
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
    @id(0x0200000a) table end_0 {
        key = {
            meta.current_0: exact @name("meta.current_0");
        }
        actions = {
            ports_0;
        }
        default_action = ports_0(0x0);
        size = 3;
    }
    @id(0x0200000b) table begin_1 {
        actions = {
            go_1;
        }
        default_action = go_1(0x0);
    }
    @id(0x0200000c) table has_add_order_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.add_order_1.isValid(): exact @name("hdr.add_order_1.$valid$");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x0200000d) table has_trade_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.trade_1.isValid(): exact @name("hdr.trade_1.$valid$");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x0200000e) table add_order_stock_1 {
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
    @id(0x0200000f) table add_order_stock_1_else {
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
    @id(0x02000010) table add_order_price_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
            hdr.add_order_1.price: range @name("hdr.add_order_1.price");
        }
        actions = {
            go_1;
            nothing;
        }
        default_action = nothing();
        size = 2;
    }
    @id(0x02000011) table add_order_price_1_else {
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
    @id(0x02000012) table trade_stock_1 {
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
    @id(0x02000013) table trade_stock_1_else {
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
    @id(0x02000014) table end_1 {
        key = {
            meta.current_1: exact @name("meta.current_1");
        }
        actions = {
            ports_1;
        }
        default_action = ports_1(0x0);
        size = 3;
    }
    @id(0x02000015) table spread {
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
    @id(0x02000016) table everywhere {
        actions = {
            forward;
            multicast;
            discard;
        }
        default_action = multicast(0x2);
    }
    apply {
        clear();
        if (standard_metadata.parser_error != error.NoError) {
            discard();
        } else {
            if (meta.too_many == 1w0x1) {
                everywhere.apply();
            } else {
                begin_0.apply();
                has_add_order_0.apply();
                has_trade_0.apply();
                if (!add_order_stock_0.apply().hit) {
                    add_order_stock_0_else.apply();
                }
                if (!add_order_price_0.apply().hit) {
                    add_order_price_0_else.apply();
                }
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
                    if (!add_order_price_1.apply().hit) {
                        add_order_price_1_else.apply();
                    }
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
}

control SwitchEgress(inout headers_t hdr, inout meta_t meta,
        inout standard_metadata_t standard_metadata) {
    // Leaves the copy alone.
    @id(0x0100000b) action nothing() {
    }
    // No message is for this port.
    @id(0x0100000c) action drop_copy() {
        mark_to_drop(standard_metadata);
    }
    // The copy's own port.
    @id(0x0100000d) action port_bit(bit<3> word_0) {
        meta.mine_0 = word_0;
    }
    // All messages are there yet.
    @id(0x0100000e) action none_pruned() {
        meta.pruned = 16w0x0;
        meta.removed = 16w0x0;
        meta.lengths = 16w0x0;
    }
    // Takes the message out of this copy.
    @id(0x0100000f) action prune_0() {
        meta.pruned = (bit<16>)(meta.pruned + 16w0x1);
        meta.removed = (bit<16>)(meta.removed + hdr.length_0.bytes);
        meta.lengths = (bit<16>)(meta.lengths + 16w0x2);
        hdr.length_0.setInvalid();
        hdr.add_order_0.setInvalid();
        hdr.rest_0.setInvalid();
        hdr.trade_0.setInvalid();
    }
    // Takes the message out of this copy.
    @id(0x01000010) action prune_1() {
        meta.pruned = (bit<16>)(meta.pruned + 16w0x1);
        meta.removed = (bit<16>)(meta.removed + hdr.length_1.bytes);
        meta.lengths = (bit<16>)(meta.lengths + 16w0x2);
        hdr.length_1.setInvalid();
        hdr.add_order_1.setInvalid();
        hdr.rest_1.setInvalid();
        hdr.trade_1.setInvalid();
    }
    // Whether messages go to the copy's own port.
    @id(0x01000011) action meet() {
        meta.shared_0_0 = (meta.ports_0_0 & meta.mine_0);
        meta.shared_1_0 = (meta.ports_1_0 & meta.mine_0);
    }
    // The bytes that are gone, with the lengths in front.
    @id(0x01000012) action total() {
        meta.removed = (bit<16>)(meta.removed + meta.lengths);
    }
    // Makes count and lengths right.
    @id(0x01000013) action fix() {
        meta.changed = 1w0x1;
        hdr.mold.count = (bit<16>)(hdr.mold.count - meta.pruned);
        hdr.ipv4.total_length = (bit<16>)(hdr.ipv4.total_length - meta.removed);
        hdr.ipv6.payload_length = (bit<16>)(hdr.ipv6.payload_length - meta.removed);
        hdr.udp.length = (bit<16>)(hdr.udp.length - meta.removed);
        hdr.udp.checksum = 16w0x0;
    }
    // No packet goes back to where it came from.
    @id(0x01000014) action drop_back() {
        mark_to_drop(standard_metadata);
    }
    @id(0x02000017) table own_port {
        key = {
            standard_metadata.egress_port: exact @name("standard_metadata.egress_port");
        }
        actions = {
            port_bit;
        }
        default_action = port_bit(0x0);
        size = 3;
    }
    @id(0x02000018) table keep_headers {
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
    @id(0x02000019) table keep_0 {
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
    @id(0x0200001a) table keep_1 {
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
        if (standard_metadata.egress_port == standard_metadata.ingress_port) {
            drop_back();
        } else {
            if (meta.too_many == 1w0x0) {
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

control SwitchUpdate(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && meta.changed == 1,
            { hdr.ipv4.version, hdr.ipv4.header_length, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.udp);
        packet.emit(hdr.mold);
        packet.emit(hdr.length_0);
        packet.emit(hdr.add_order_0);
        packet.emit(hdr.trade_0);
        packet.emit(hdr.rest_0);
        packet.emit(hdr.length_1);
        packet.emit(hdr.add_order_1);
        packet.emit(hdr.trade_1);
        packet.emit(hdr.rest_1);
    }
}

V1Switch(SwitchParser(), SwitchVerify(), SwitchIngress(), SwitchEgress(), SwitchUpdate(),
        SwitchDeparser()) main;
