//! The results as bars.

use super::{Row, SIZES};
use crate::table::grouped;
use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 250.0;
const BAR: f64 = 15.0;

/// What a column of the picture shows: a title, and of a row the value.
type Column = (&'static str, fn(&Row) -> f64, &'static str);

const COLUMNS: [Column; 3] = [
    ("messages a second that arrive, sent as fast as can be", |row| row.fastest, ""),
    ("messages a second with none lost", |row| row.lossless, ""),
    ("latency at 1,000 messages a second, 99th percentile", |row| row.late, " us"),
];

/// For each figure one bar a system and size.
pub fn picture(rows: &[Row]) -> String {
    let mut body = String::new();
    let mut y = 20.0;
    for (title, value, unit) in COLUMNS {
        let _ = writeln!(body, "<text x=\"10\" y=\"{y}\" font-weight=\"bold\">{title}</text>");
        y += 10.0;
        let most = rows.iter().map(value).fold(1.0, f64::max);
        for row in rows {
            let (value, thick) = (value(row), BAR - 3.0);
            let length = (WIDTH - LEFT - 90.0) * value / most;
            let colour = if row.size == SIZES[0] { "#4477aa" } else { "#88ccee" };
            let (text, end) = (y + 11.0, LEFT + length + 5.0);
            let value = grouped(value.round() as usize);
            let _ = write!(
                body,
                "<text x=\"10\" y=\"{text}\">{}, {} bytes</text>\n\
                 <rect x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"{thick}\" fill=\"{colour}\"/>\n\
                 <text x=\"{end:.1}\" y=\"{text}\">{value}{unit}</text>\n",
                row.system, row.size
            );
            y += BAR;
        }
        y += 25.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}
