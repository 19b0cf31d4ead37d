//! The types of the image's JSON document. Everything is flat, indexed and bounded, so that plain hardware can run it.
//!
//! Read `docs/semantics.md` beside this file: it says what each part does.

mod data;
mod feature;
mod flow;
mod image;
mod operation;
mod packet;
mod rules;
mod shared;
mod store;

pub use data::{Creation, Register, RegisterType, Table, Timer};
pub use feature::Feature;
pub use flow::{Eviction, Flow, OtherPackets, WhenFull};
pub use image::{Debug, IMAGE_VERSION, Image, Sample};
pub use operation::{Operation, Operator, PayloadTest};
pub use packet::{FieldName, Format, FormatField, Place, Template, TemplateTransport, When};
pub use rules::{
    Block, Comparison, Condition, Environment, Event, Operand, PacketRef, Preparation, Repeat, Row, State,
};
pub use shared::{Tally, Turns};
pub use store::{
    Asked, Query, Ranges, RangesQuery, SEGMENT_ENDS, SegmentField, Segments, SegmentsQuery, Store, TimerQuery,
};

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_zero_source(value: &u16) -> bool {
    *value == 0
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_zero_time(value: &i64) -> bool {
    *value == 0
}
