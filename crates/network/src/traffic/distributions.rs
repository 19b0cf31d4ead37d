//! Published distributions of flow sizes.

use super::Size;
use std::sync::Arc;

/// Names that [`named`] knows.
pub const NAMES: [&str; 2] = ["datamining", "websearch"];

/// Flow sizes of a cluster that answers web searches: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, as
/// the bytes and cumulative shares of `WebSearch_distribution.txt` in the traffic generator of HPCC (SIGCOMM 2019).
const WEB_SEARCH: [(u64, f64); 12] = [
    (0, 0.0),
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1.0),
];

/// Flow sizes of a cluster that mines data: A. Greenberg et al., "VL2: A Scalable and Flexible Data Center Network",
/// SIGCOMM 2009, as in `CDF_vl2` of the simulations of pFabric (SIGCOMM 2013): packets, here of 1,460 bytes.
const DATA_MINING: [(u64, f64); 9] = [
    (1_460, 0.0),
    (1_460, 0.5),
    (2 * 1_460, 0.6),
    (3 * 1_460, 0.7),
    (7 * 1_460, 0.8),
    (267 * 1_460, 0.9),
    (2_107 * 1_460, 0.95),
    (66_667 * 1_460, 0.99),
    (666_667 * 1_460, 1.0),
];

/// The published distribution of this name.
pub fn named(name: &str) -> Option<Size> {
    let table = match name {
        "websearch" => WEB_SEARCH.as_slice(),
        "datamining" => DATA_MINING.as_slice(),
        _ => return None,
    };
    Some(Size::Empirical(Arc::new(table.to_vec())))
}
