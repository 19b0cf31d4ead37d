//! Pictures and pages: charts with axes, box plots, state diagrams, tables in HTML, and the few numbers that say much of
//! many. SVG and HTML as text; no scripts, light or dark as the reader has it.
#![forbid(unsafe_code)]

mod axis;
mod boxes;
pub mod chart;
pub mod graph;
mod histogram;
pub mod html;
mod markup;
mod number;
pub mod statistics;
mod unit;

pub use axis::Axis;
pub use boxes::BoxPlot;
pub use histogram::Histogram;
pub use html::{alone, document};
pub use markup::escape_markup;
pub use number::{grouped, seconds};
pub use unit::Unit;
