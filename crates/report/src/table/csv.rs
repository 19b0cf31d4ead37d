//! CSV as RFC 4180 has it. Not by the `csv` crate, whose writer can't tell an unknown cell from an empty text; tests read the
//! tables with it.

use super::{Cells, Table};
use std::borrow::Cow;
use std::fmt::Write as _;

impl Table {
    /// As CSV after RFC 4180: a header row with the columns' names, commas, lines that end in CR LF. An empty cell is
    /// nothing between the commas, an empty text is `""`. Floating-point numbers have as many digits as it takes to read
    /// the same number again.
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        for (index, column) in self.columns().iter().enumerate() {
            separate(&mut out, index);
            out.push_str(&quoted(&column.name));
        }
        out.push_str("\r\n");
        for row in 0..self.rows() {
            for (index, column) in self.columns().iter().enumerate() {
                separate(&mut out, index);
                // Writing to a String cannot fail.
                let _ = match &column.cells {
                    Cells::Text(cells) => cells[row].iter().try_for_each(|cell| out.write_str(&quoted(cell))),
                    Cells::Integer(cells) => cells[row].iter().try_for_each(|cell| write!(out, "{cell}")),
                    Cells::Unsigned(cells) => cells[row].iter().try_for_each(|cell| write!(out, "{cell}")),
                    Cells::Float(cells) => cells[row].iter().try_for_each(|cell| write!(out, "{cell}")),
                    Cells::Boolean(cells) => cells[row].iter().try_for_each(|cell| write!(out, "{cell}")),
                };
            }
            out.push_str("\r\n");
        }
        out
    }
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push(',');
    }
}

/// In quotation marks, these doubled, if the text would else be read as something different.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_are_quoted_where_needed_and_empty_where_unknown() {
        let table = Table::new("t")
            .text("name", [Some("plain"), Some("a,b"), Some("say \"no\""), Some("two\nlines"), Some(""), None])
            .integer("start_ns", [Some(-5), Some(0), None, Some(i64::MAX), Some(1), None])
            .float("a,b", [0.1, 2.0, 1e21, -0.0, f64::NAN, 1e-7])
            .boolean("late", [Some(true), Some(false), None, None, None, None])
            .unsigned("seed", [u64::MAX; 6]);
        let max = u64::MAX;
        let expected = format!(
            "name,start_ns,\"a,b\",late,seed\r\nplain,-5,0.1,true,{max}\r\n\"a,b\",0,2,false,{max}\r\n\
             \"say \"\"no\"\"\",,1000000000000000000000,,{max}\r\n\"two\nlines\",9223372036854775807,-0,,{max}\r\n\
             \"\",1,NaN,,{max}\r\n,,0.0000001,,{max}\r\n"
        );
        assert_eq!(table.to_csv(), expected);
    }

    proptest! {
        #[test]
        fn a_reader_finds_the_same_cells(
            rows in prop::collection::vec((prop::option::of("[a\",\r\n é]{0,6}"), any::<f64>(), any::<i64>()), 0..20),
        ) {
            let table = Table::new("t")
                .text("text", rows.iter().map(|row| row.0.as_deref()))
                .float("float", rows.iter().map(|row| row.1))
                .integer("integer", rows.iter().map(|row| row.2));
            let text = table.to_csv();
            let lines: Vec<_> = csv::Reader::from_reader(text.as_bytes()).into_records().map(Result::unwrap).collect();
            prop_assert_eq!(lines.len(), rows.len());
            for (line, (text, float, integer)) in lines.iter().zip(&rows) {
                prop_assert_eq!(&line[0], text.as_deref().unwrap_or_default());
                prop_assert_eq!(line[1].parse::<f64>().unwrap().to_bits(), float.to_bits());
                prop_assert_eq!(&line[2], &integer.to_string());
            }
        }
    }
}
