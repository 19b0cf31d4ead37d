//! Apache Parquet, without its in-memory format Arrow.

use super::{Cells, Column, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError as Inner;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::sync::Arc;

/// Rows of a row group: what a reader takes at once.
const ROWS_OF_A_GROUP: usize = 1 << 20;

/// A table could not be written as Parquet.
#[derive(Debug, thiserror::Error)]
#[error("table {table} as Parquet: {cause}")]
pub struct ParquetError {
    /// Name of the table.
    pub table: String,
    /// What the encoder says.
    pub cause: String,
}

impl Table {
    /// As an Apache Parquet file, compressed with Snappy. All columns are optional; text is UTF-8, integers have 64 bits,
    /// floating-point numbers are doubles. The same table gives the same bytes.
    ///
    /// # Errors
    /// If the encoder refuses: two columns have the same name, or a text is longer than 2 GiB.
    pub fn to_parquet(&self) -> Result<Vec<u8>, ParquetError> {
        let fail = |cause: String| ParquetError { table: self.name().to_owned(), cause };
        for (index, column) in self.columns().iter().enumerate() {
            if self.columns()[..index].iter().any(|other| other.name == column.name) {
                return Err(fail(format!("two columns are named {}", column.name)));
            }
        }
        write(self).map_err(|error| fail(error.to_string()))
    }
}

fn write(table: &Table) -> Result<Vec<u8>, Inner> {
    let fields = table.columns().iter().map(field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder(table.name()).with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // The encoder's version would change the bytes with every update.
        .set_created_by("weftwire".to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut first = 0;
    while first < table.rows() && !table.columns().is_empty() {
        let end = table.rows().min(first + ROWS_OF_A_GROUP);
        let mut group = writer.next_row_group()?;
        for column in table.columns() {
            let Some(mut cells) = group.next_column()? else { break };
            match &column.cells {
                Cells::Text(values) => {
                    put::<_, ByteArrayType>(cells.typed(), &values[first..end], |text| ByteArray::from(&**text))?;
                }
                Cells::Integer(values) => put::<_, Int64Type>(cells.typed(), &values[first..end], |value| *value)?,
                Cells::Unsigned(values) => {
                    // Parquet keeps unsigned integers as the signed ones with the same bits.
                    put::<_, Int64Type>(cells.typed(), &values[first..end], |value| value.cast_signed())?;
                }
                Cells::Float(values) => put::<_, DoubleType>(cells.typed(), &values[first..end], |value| *value)?,
                Cells::Boolean(values) => put::<_, BoolType>(cells.typed(), &values[first..end], |value| *value)?,
            }
            cells.close()?;
        }
        group.close()?;
        first = end;
    }
    writer.into_inner()
}

fn field(column: &Column) -> Result<Arc<Type>, Inner> {
    let (physical, logical) = match column.cells {
        Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Cells::Integer(_) => (Physical::INT64, None),
        Cells::Unsigned(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Cells::Float(_) => (Physical::DOUBLE, None),
        Cells::Boolean(_) => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(field.with_logical_type(logical).build()?))
}

/// Writes cells: which of them are there, and the values of those.
fn put<C, T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    cells: &[Option<C>],
    value: impl Fn(&C) -> T::T,
) -> Result<(), Inner> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let values: Vec<T::T> = cells.iter().flatten().map(value).collect();
    writer.write_batch(&values, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use proptest::prelude::*;

    /// The rows of a file, cell by cell, as the crate's own reader has them.
    fn read(bytes: Vec<u8>) -> Vec<Vec<(String, Field)>> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        rows.map(|row| row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()).collect()
    }

    /// The rows of a table in the same form.
    fn rows(table: &Table) -> Vec<Vec<(String, Field)>> {
        let field = |cells: &Cells, row: usize| match cells {
            Cells::Text(cells) => cells[row].as_ref().map(|cell| Field::Str(cell.to_string())),
            Cells::Integer(cells) => cells[row].map(Field::Long),
            Cells::Unsigned(cells) => cells[row].map(Field::ULong),
            Cells::Float(cells) => cells[row].map(Field::Double),
            Cells::Boolean(cells) => cells[row].map(Field::Bool),
        };
        let row =
            |row| table.columns().iter().map(move |c| (c.name.clone(), field(&c.cells, row).unwrap_or(Field::Null)));
        (0..table.rows()).map(|number| row(number).collect()).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            cells in prop::collection::vec(
                (
                    prop::option::of("[a-c, \"é]{0,5}"),
                    prop::option::of(any::<i64>()),
                    prop::option::of(any::<u64>()),
                    prop::option::of(-1e300_f64..1e300),
                    prop::option::of(any::<bool>()),
                ),
                0..40,
            ),
        ) {
            let table = Table::new("links")
                .text("name", cells.iter().map(|row| row.0.as_deref()))
                .integer("at_ns", cells.iter().map(|row| row.1))
                .unsigned("seed", cells.iter().map(|row| row.2))
                .float("rate, in \"bits\"", cells.iter().map(|row| row.3))
                .boolean("late", cells.iter().map(|row| row.4));
            let bytes = table.to_parquet().unwrap();
            prop_assert_eq!(&bytes, &table.to_parquet().unwrap());
            prop_assert_eq!(read(bytes), rows(&table));
        }
    }

    #[test]
    fn more_rows_than_a_group_takes_are_several_groups() {
        let table = Table::new("t").integer("n", 0..(ROWS_OF_A_GROUP as i64 + 5));
        let bytes = table.to_parquet().unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        assert_eq!(groups, [ROWS_OF_A_GROUP as i64, 5]);
    }

    #[test]
    fn columns_of_the_same_name_are_refused() {
        let error = Table::new("flows").integer("n", [1]).integer("n", [2]).to_parquet().unwrap_err();
        assert_eq!(error.to_string(), "table flows as Parquet: two columns are named n");
    }
}
