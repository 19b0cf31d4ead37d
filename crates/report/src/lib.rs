//! What a run gave: as tables ([`table`]), as pictures and pages, and compared with another run ([`agreement`]).
//!
//! [`connections`] sorts captured packets into connections, [`ladder()`] and [`plot()`] draw one of them as SVG, and
//! [`page()`] makes one HTML page of everything. [`network::page`] shows a run of a network, [`sweep::page`] many runs,
//! [`comparison::page`] two runs beside each other.
//!
//! All of it is a pure function of its inputs: nothing here opens a file.
#![forbid(unsafe_code)]

pub mod agreement;
pub mod beside;
pub mod comparison;
mod connection;
mod ladder;
pub mod network;
mod page;
mod plot;
pub mod sweep;
pub mod table;
mod topology;

pub use connection::{Connection, Exchange, Observed, Standing, Tally, connections};
pub use ladder::ladder;
pub use page::{Page, page};
pub use plot::plot;
