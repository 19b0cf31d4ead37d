//! Rows and charts as files: CSV, HTML, pictures.

use std::fmt::Write as _;
use weftwire_draw::chart::{Chart, stack};

/// Colours for a picture that stands alone.
const STYLE: &str = "<style>text{font:13px sans-serif;fill:#333}.head{font-size:15px;font-weight:600}.plate{fill:none;stroke:#999}\
    .grid{stroke:#8884;fill:none}.line{fill:none;stroke-width:1.6}.dots{fill:none;stroke-width:6;stroke-linecap:round}\
    .tone0{stroke:#0b6fbf}.tone1{stroke:#c2410c}.tone2{stroke:#15803d}.tone3{stroke:#7e22ce}.tone4{stroke:#a16207}\
    .tone5{stroke:#be185d}.tone6{stroke:#0f766e}.tone7{stroke:#555}svg{background:#fff}</style>\n";

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
    let drawn = stack(charts);
    match drawn.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{STYLE}{rest}"),
        None => drawn,
    }
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
