//! The picture of what the calendar costs.

use weftwire_draw::chart::{Chart, Shape, stack};
use weftwire_draw::{Axis, Unit, alone};

use crate::calendar::Results;

/// One chart for each case: the best round against the number of timers.
pub fn picture(results: &Results) -> String {
    let mut cases: Vec<&str> = results.rows.iter().map(|row| row.case).collect();
    cases.dedup();
    let charts: Vec<Chart> = cases
        .into_iter()
        .map(|case| {
            let x = Axis::logarithmic("timers", Unit::Plain);
            let y = Axis::logarithmic("time of a pair of operations", Unit::Seconds);
            let mut chart = Chart::new(case, x, y);
            let rows = || results.rows.iter().filter(|row| row.case == case && row.structure != "loop alone");
            let mut structures: Vec<&str> = Vec::new();
            rows().for_each(|row| {
                if !structures.contains(&row.structure) {
                    structures.push(row.structure);
                }
            });
            for structure in structures {
                let points = rows().filter(|row| row.structure == structure);
                chart.add(
                    structure,
                    Shape::Line(points.map(|row| (f64::from(row.timers), row.best() * 1e-9)).collect()),
                );
            }
            chart
        })
        .collect();
    alone(&stack(&charts))
}
