//! Tables of typed columns, and how they are written: CSV and Parquet.
//!
//! Results become tables here: [`links()`], [`flows()`], [`samples()`], [`functions()`] and
//! [`node_drops()`] of one run; [`runs()`] has a row for each of many runs, and [`Table::append_run`] puts the tables of
//! many runs into one. Columns and rows have the same order each time. Units are part of a column's name.

mod csv;
mod parquet;
mod results;

pub use parquet::ParquetError;
pub(crate) use results::counter_rows;
pub use results::{RunKey, flows, functions, links, node_drops, probes, runs, samples, slowdown, summary};

use std::sync::Arc;

/// A table: columns of equal length.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    name: String,
    columns: Vec<Column>,
}

/// One column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its name, with the unit: `start_ns`.
    pub name: String,
    /// Its cells, from the first row to the last.
    pub cells: Cells,
}

/// Cells of one type. `None` is an empty cell: the value is not known or does not apply.
#[derive(Clone, PartialEq, Debug)]
pub enum Cells {
    /// Text. Shared, as the same few names come in most rows.
    Text(Vec<Option<Arc<str>>>),
    /// Integers with a sign.
    Integer(Vec<Option<i64>>),
    /// Integers from 0.
    Unsigned(Vec<Option<u64>>),
    /// Floating-point numbers.
    Float(Vec<Option<f64>>),
    /// Yes or no.
    Boolean(Vec<Option<bool>>),
}

impl Cells {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Cells::Text(cells) => cells.len(),
            Cells::Integer(cells) => cells.len(),
            Cells::Unsigned(cells) => cells.len(),
            Cells::Float(cells) => cells.len(),
            Cells::Boolean(cells) => cells.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cells of the same type, all empty.
    fn blank(&self, rows: usize) -> Cells {
        match self {
            Cells::Text(_) => Cells::Text(vec![None; rows]),
            Cells::Integer(_) => Cells::Integer(vec![None; rows]),
            Cells::Unsigned(_) => Cells::Unsigned(vec![None; rows]),
            Cells::Float(_) => Cells::Float(vec![None; rows]),
            Cells::Boolean(_) => Cells::Boolean(vec![None; rows]),
        }
    }

    /// Puts cells of the same type behind these; of another type, as many empty ones.
    fn extend(&mut self, other: Cells) {
        match (self, other) {
            (Cells::Text(own), Cells::Text(cells)) => own.extend(cells),
            (Cells::Integer(own), Cells::Integer(cells)) => own.extend(cells),
            (Cells::Unsigned(own), Cells::Unsigned(cells)) => own.extend(cells),
            (Cells::Float(own), Cells::Float(cells)) => own.extend(cells),
            (Cells::Boolean(own), Cells::Boolean(cells)) => own.extend(cells),
            (own, cells) => own.extend(own.blank(cells.len())),
        }
    }
}

impl Table {
    /// A table without columns. Its name is that of its files.
    pub fn new(name: &str) -> Table {
        Table { name: name.to_owned(), columns: Vec::new() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, from left to right.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// With one more column on the right. All columns of a table have as many cells as its first.
    ///
    /// # Panics
    /// If it has not as many cells: a mistake of the program, whatever its input.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, cells: Cells) -> Table {
        assert!(self.columns.is_empty() || cells.len() == self.rows(), "columns of one table have equal lengths");
        self.columns.push(Column { name: name.into(), cells });
        self
    }

    /// With one more column of text.
    #[must_use]
    pub fn text<'a>(self, name: &str, cells: impl IntoIterator<Item = impl Into<Option<&'a str>>>) -> Table {
        let mut last: Option<Arc<str>> = None;
        let cells = cells.into_iter().map(|cell| {
            let cell: Option<&str> = cell.into();
            // Neighbours are often equal: they share their memory.
            cell.map(|text| match &last {
                Some(known) if **known == *text => known.clone(),
                _ => last.insert(text.into()).clone(),
            })
        });
        let cells = cells.collect();
        self.with(name, Cells::Text(cells))
    }

    /// With one more column of integers with a sign.
    #[must_use]
    pub fn integer(self, name: &str, cells: impl IntoIterator<Item = impl Into<Option<i64>>>) -> Table {
        self.with(name, Cells::Integer(cells.into_iter().map(Into::into).collect()))
    }

    /// With one more column of integers from 0.
    #[must_use]
    pub fn unsigned(self, name: &str, cells: impl IntoIterator<Item = impl Into<Option<u64>>>) -> Table {
        self.with(name, Cells::Unsigned(cells.into_iter().map(Into::into).collect()))
    }

    /// With one more column of floating-point numbers.
    #[must_use]
    pub fn float(self, name: &str, cells: impl IntoIterator<Item = impl Into<Option<f64>>>) -> Table {
        self.with(name, Cells::Float(cells.into_iter().map(Into::into).collect()))
    }

    /// With one more column of yes and no.
    #[must_use]
    pub fn boolean(self, name: &str, cells: impl IntoIterator<Item = impl Into<Option<bool>>>) -> Table {
        self.with(name, Cells::Boolean(cells.into_iter().map(Into::into).collect()))
    }

    /// Puts the rows of another table behind its own. Columns belong together by name; where one of the tables lacks a
    /// column, or has it with another type, its cells are empty.
    pub fn append(&mut self, other: Table) {
        let (own, added) = (self.rows(), other.rows());
        let mut others: Vec<Option<Column>> = other.columns.into_iter().map(Some).collect();
        for column in &mut self.columns {
            let found = others.iter_mut().find(|other| other.as_ref().is_some_and(|other| other.name == column.name));
            match found.and_then(Option::take) {
                Some(other) => column.cells.extend(other.cells),
                None => column.cells.extend(column.cells.blank(added)),
            }
        }
        for mut column in others.into_iter().flatten() {
            let mut cells = column.cells.blank(own);
            cells.extend(column.cells);
            column.cells = cells;
            self.columns.push(column);
        }
    }

    /// Puts the table of one of many runs behind its own rows, with columns in front that say which run it is of: those
    /// of [`RunKey`].
    pub fn append_run(&mut self, key: &RunKey, table: Table) {
        let rows = table.rows();
        let mut wide = key.columns(&self.name, rows);
        wide.columns.extend(table.columns);
        self.append(wide);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_put_together_by_column_names() {
        let mut table = Table::new("t").text("who", ["a", "b"]).integer("n", [1, 2]);
        table.append(Table::new("u").integer("n", [3]).boolean("late", [true]));
        let expected = Table::new("t")
            .text("who", [Some("a"), Some("b"), None])
            .integer("n", [1, 2, 3])
            .boolean("late", [None, None, Some(true)]);
        assert_eq!(table, expected);
        table.append(Table::new("v").float("n", [0.5]));
        assert_eq!(
            table.column("n").map(|column| &column.cells),
            Some(&Cells::Integer(vec![Some(1), Some(2), Some(3), None]))
        );
        assert_eq!(table.rows(), 4);
    }

    #[test]
    fn an_empty_table_takes_the_columns_of_the_first() {
        let mut table = Table::new("all");
        let one = Table::new("one").unsigned("n", [7]);
        table.append(one.clone());
        assert_eq!(table.columns(), one.columns());
    }
}
