//! Rows and charts as files: CSV, HTML, pictures.

use std::fmt::Write as _;
use weftwire_draw::chart::{Chart, stack};

/// Rows as CSV.
pub fn csv(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    // Memory takes all, and cells are text.
    let _ = writer.write_record(heads);
    for row in rows {
        let _ = writer.write_record(row);
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Rows as a table of HTML. No cell has anything to escape.
pub fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = String::from("<table class=\"wide\">\n<thead><tr>");
    for head in heads {
        let _ = write!(out, "<th>{}</th>", head.replace('_', " "));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let class = if cell.parse::<f64>().is_ok() { " class=\"right\"" } else { "" };
            let _ = write!(out, "<td{class}>{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
    out
}

/// Charts as a picture that needs no style sheet.
pub fn alone(charts: &[Chart]) -> String {
    weftwire_draw::alone(&stack(charts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed() {
        let row = ["1", "a,b", "say \"no\""].map(str::to_owned).to_vec();
        assert_eq!(csv(&["n", "name", "x"], [row].into_iter()), "n,name,x\n1,\"a,b\",\"say \"\"no\"\"\"\n");
    }
}
