//! What programs find in their architectures: types of metadata, and the parameters of blocks. After bmv2's and Tofino's
//! public documents; only what a program may use of the objects is in [`super::check`].

use super::syntax::{Fields, Type, read};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    V1model,
    Tna,
}

const V1MODEL: &str = "
    struct standard_metadata_t {
        bit<9> ingress_port; bit<9> egress_spec; bit<9> egress_port; bit<32> instance_type; bit<32> packet_length;
        bit<32> enq_timestamp; bit<19> enq_qdepth; bit<32> deq_timedelta; bit<19> deq_qdepth;
        bit<48> ingress_global_timestamp; bit<48> egress_global_timestamp; bit<16> mcast_grp; bit<16> egress_rid;
        bit<1> checksum_error; error parser_error; bit<3> priority;
    }
";

const TNA: &str = "
    header ingress_intrinsic_metadata_t {
        bit<1> resubmit_flag; bit<1> pad1; bit<2> packet_version; bit<3> pad2; bit<9> ingress_port;
        bit<48> ingress_mac_tstamp;
    }
    struct ingress_intrinsic_metadata_for_tm_t {
        bit<9> ucast_egress_port; bit<1> bypass_egress; bit<1> deflect_on_drop; bit<3> ingress_cos; bit<5> qid;
        bit<1> copy_to_cpu; bit<16> mcast_grp_a; bit<16> mcast_grp_b; bit<13> level1_mcast_hash;
        bit<13> level2_mcast_hash; bit<16> level1_exclusion_id; bit<9> level2_exclusion_id; bit<16> rid;
    }
    struct ingress_intrinsic_metadata_from_parser_t { bit<48> global_tstamp; bit<32> global_ver; bit<16> parser_err; }
    struct ingress_intrinsic_metadata_for_deparser_t { bit<3> drop_ctl; bit<3> digest_type; bit<3> resubmit_type; }
    header egress_intrinsic_metadata_t {
        bit<7> pad0; bit<9> egress_port; bit<5> pad1; bit<19> enq_qdepth; bit<6> pad2; bit<2> enq_congest_stat;
        bit<14> pad3; bit<18> enq_tstamp; bit<5> pad4; bit<19> deq_qdepth; bit<6> pad5; bit<2> deq_congest_stat;
        bit<8> app_pool_congest_stat; bit<14> pad6; bit<18> deq_timedelta; bit<16> egress_rid; bit<7> pad7;
        bit<1> egress_rid_first; bit<3> pad8; bit<5> egress_qid; bit<5> pad9; bit<3> egress_cos; bit<7> pad10;
        bit<1> deflection_flag; bit<16> pkt_length;
    }
    struct egress_intrinsic_metadata_from_parser_t { bit<48> global_tstamp; bit<32> global_ver; bit<16> parser_err; }
    struct egress_intrinsic_metadata_for_deparser_t { bit<3> drop_ctl; bit<3> mirror_type; }
    struct egress_intrinsic_metadata_for_output_port_t { bit<1> capture_tstamp_on_tx; bit<1> update_delay_on_tx; }
";

/// What the includes declare at the top level besides types of metadata, so that no program may: of `core.p4` and `v1model.p4`
/// as p4c has them since 2019.
const CORE_NAMES: &str = "NoAction packet_in packet_out verify static_assert";

const V1MODEL_NAMES: &str = "
    V1Switch Parser VerifyChecksum Ingress Egress ComputeChecksum Deparser
    CounterType MeterType HashAlgorithm CloneType Checksum16 PortId_t
    counter direct_counter meter direct_meter register action_profile action_selector
    random digest mark_to_drop hash verify_checksum update_checksum verify_checksum_with_payload
    update_checksum_with_payload clone clone3 resubmit recirculate truncate assert assume log_msg
    clone_preserving_field_list resubmit_preserving_field_list recirculate_preserving_field_list __v1model_version
";

/// Of `tna.p4` and `t2na.p4` with what they include.
const TNA_NAMES: &str = "
    Switch Pipeline MultiParserSwitch MultiParserPipeline IngressParsers EgressParsers
    IngressParserT IngressT IngressDeparserT EgressParserT EgressT EgressDeparserT GhostT
    PORT_ID_WIDTH PORT_METADATA_SIZE INVALID_PORT PortId_t MulticastGroupId_t QueueId_t MirrorType_t MirrorId_t
    ResubmitType_t DigestType_t ReplicationId_t L1ExclusionId_t L2ExclusionId_t
    MeterType_t MeterColor_t CounterType_t SelectorMode_t HashAlgorithm_t MathOp_t
    pktgen_timer_header_t pktgen_port_down_header_t pktgen_recirc_header_t ptp_metadata_t
    Checksum ParserCounter ParserPriority CRCPolynomial Hash Random max min funnel_shift_right invalidate is_validated
    port_metadata_unpack sizeInBits sizeInBytes Counter DirectCounter Meter DirectMeter Lpf DirectLpf Wred DirectWred
    Register DirectRegister RegisterParam MathUnit RegisterAction DirectRegisterAction ActionProfile ActionSelector
    SelectorAction Mirror Resubmit Digest Atcam Alpm
    PARSER_ERROR_OK PARSER_ERROR_NO_MATCH PARSER_ERROR_PARTIAL_HDR PARSER_ERROR_CTR_RANGE PARSER_ERROR_TIMEOUT_USER
    PARSER_ERROR_TIMEOUT_HW PARSER_ERROR_SRC_EXT PARSER_ERROR_DST_CONT PARSER_ERROR_PHV_OWNER PARSER_ERROR_MULTIWRITE
    PARSER_ERROR_ARAM_MBE PARSER_ERROR_FCS
";

/// What the switch puts in front of packets besides the ingress header.
pub const PORT_METADATA_BITS: usize = 64;

/// The parameters of a block: directions and types; `H` and `M` are the program's own.
type Block = &'static [(&'static str, &'static str)];

const V1_PARSER: Block = &[("", "packet_in"), ("out", "H"), ("inout", "M"), ("inout", "standard_metadata_t")];
const V1_CHECKSUM: Block = &[("inout", "H"), ("inout", "M")];
const V1_CONTROL: Block = &[("inout", "H"), ("inout", "M"), ("inout", "standard_metadata_t")];
const V1_DEPARSER: Block = &[("", "packet_out"), ("in", "H")];

const INGRESS_PARSER: Block = &[("", "packet_in"), ("out", "H"), ("out", "M"), ("out", "ingress_intrinsic_metadata_t")];
const INGRESS: Block = &[
    ("inout", "H"),
    ("inout", "M"),
    ("in", "ingress_intrinsic_metadata_t"),
    ("in", "ingress_intrinsic_metadata_from_parser_t"),
    ("inout", "ingress_intrinsic_metadata_for_deparser_t"),
    ("inout", "ingress_intrinsic_metadata_for_tm_t"),
];
const INGRESS_DEPARSER: Block =
    &[("", "packet_out"), ("inout", "H"), ("in", "M"), ("in", "ingress_intrinsic_metadata_for_deparser_t")];
const EGRESS_PARSER: Block = &[("", "packet_in"), ("out", "H"), ("out", "M"), ("out", "egress_intrinsic_metadata_t")];
const EGRESS: Block = &[
    ("inout", "H"),
    ("inout", "M"),
    ("in", "egress_intrinsic_metadata_t"),
    ("in", "egress_intrinsic_metadata_from_parser_t"),
    ("inout", "egress_intrinsic_metadata_for_deparser_t"),
    ("inout", "egress_intrinsic_metadata_for_output_port_t"),
];
const EGRESS_DEPARSER: Block =
    &[("", "packet_out"), ("inout", "H"), ("in", "M"), ("in", "egress_intrinsic_metadata_for_deparser_t")];

impl Kind {
    pub fn types(self) -> Vec<Fields> {
        read(if self == Kind::Tna { TNA } else { V1MODEL }).types
    }

    /// Names that the includes declare at the top level, besides those of [`Kind::types`].
    pub fn declared(self) -> impl Iterator<Item = &'static str> {
        let own = if self == Kind::Tna { TNA_NAMES } else { V1MODEL_NAMES };
        CORE_NAMES.split_whitespace().chain(own.split_whitespace())
    }

    /// The package, the name of what is called `main`, and the blocks in order.
    pub fn blocks(self) -> Vec<Block> {
        match self {
            Kind::V1model => vec![V1_PARSER, V1_CHECKSUM, V1_CONTROL, V1_CONTROL, V1_CHECKSUM, V1_DEPARSER],
            Kind::Tna => {
                vec![INGRESS_PARSER, INGRESS, INGRESS_DEPARSER, EGRESS_PARSER, EGRESS, EGRESS_DEPARSER]
            }
        }
    }

    pub fn package(self) -> &'static str {
        if self == Kind::Tna { "Pipeline" } else { "V1Switch" }
    }
}

pub fn is_own(kind: &Type, wanted: &str) -> bool {
    let Type::Named(name, arguments) = kind else { return false };
    arguments.is_empty() && (wanted == "H" || wanted == "M" || name == wanted)
}
