//! One table to one Parquet file.
use super::cell::{CellValue, ParquetCell};
use super::columns::{ColumnRule, ColumnVisitor, TableRow};
use crate::packed_rows::{PackedRow, PackedRows};
use parquet::basic::{Compression, Repetition};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::io::Write;
use std::sync::Arc;

/// Rows per row group: a reader that filters by slice or region skips whole groups.
const GROUP_ROWS: usize = 1 << 20;
/// Rows handed to Parquet at a time.
const BATCH_ROWS: usize = 1 << 14;

/// Rows in memory, however they are kept there.
pub(crate) trait TableRows<T: TableRow> {
    fn count(&self) -> usize;
    fn is_in_order(&self) -> bool;
    fn to_list(&self) -> Vec<T>;
    /// Hands over all rows, so many at a time.
    fn in_groups(&self, rows: usize, group: &mut GroupSink<'_, T>) -> Result<(), ParquetError>;
}

type GroupSink<'a, T> = dyn FnMut(&[T]) -> Result<(), ParquetError> + 'a;

impl<T: TableRow> TableRows<T> for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn is_in_order(&self) -> bool {
        self.is_sorted_by_key(T::key)
    }

    fn to_list(&self) -> Vec<T> {
        self.clone()
    }

    fn in_groups(&self, rows: usize, group: &mut GroupSink<'_, T>) -> Result<(), ParquetError> {
        self.chunks(rows).try_for_each(group)
    }
}

impl<T: TableRow + PackedRow> TableRows<T> for PackedRows<T> {
    fn count(&self) -> usize {
        self.row_count()
    }

    fn is_in_order(&self) -> bool {
        self.rows().is_sorted_by_key(|row| row.key())
    }

    fn to_list(&self) -> Vec<T> {
        self.rows().collect()
    }

    fn in_groups(&self, rows: usize, group: &mut GroupSink<'_, T>) -> Result<(), ParquetError> {
        let mut left = self.rows();
        let mut taken: Vec<T> = Vec::with_capacity(rows.min(self.row_count()));
        loop {
            taken.clear();
            taken.extend(left.by_ref().take(rows));
            if taken.is_empty() {
                return Ok(());
            }
            group(&taken)?;
        }
    }
}

/// Writes all rows of a table.
pub(crate) fn encode_table<T: TableRow, W: Write + Send>(
    rows: &dyn TableRows<T>,
    to: W,
) -> Result<(), ParquetError> {
    let (schema, properties) = schema::<T>()?;
    let mut writer = SerializedFileWriter::new(to, schema, properties)?;
    let mut write = |rows: &[T]| {
        let mut group = writer.next_row_group()?;
        T::visit(&mut RowGroupEncoder {
            rows,
            group: &mut group,
        })?;
        group.close().map(drop)
    };
    if rows.is_in_order() {
        rows.in_groups(GROUP_ROWS, &mut write)?;
    } else {
        let mut rows = rows.to_list();
        rows.sort_by_key(T::key);
        rows.in_groups(GROUP_ROWS, &mut write)?;
    }
    writer.close()?;
    Ok(())
}

/// The columns of `T` as Parquet sees them, and how each is encoded.
pub(crate) fn schema<T: TableRow>() -> Result<(TypePtr, WriterPropertiesPtr), ParquetError> {
    let mut schema = SchemaBuilder {
        fields: Vec::new(),
        properties: WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("hither ", env!("CARGO_PKG_VERSION")).to_string()),
    };
    T::visit(&mut schema)?;
    let root = Type::group_type_builder(T::NAME)
        .with_fields(schema.fields)
        .build()?;
    Ok((Arc::new(root), Arc::new(schema.properties.build())))
}

struct SchemaBuilder {
    fields: Vec<TypePtr>,
    properties: WriterPropertiesBuilder,
}

impl<R> ColumnVisitor<R> for SchemaBuilder {
    type Error = ParquetError;

    fn column<C: ParquetCell>(
        &mut self,
        name: &'static str,
        _: ColumnRule,
        _: impl Fn(&R) -> &C,
        _: impl Fn(&mut R) -> &mut C,
    ) -> Result<(), ParquetError> {
        let field = Type::primitive_type_builder(name, C::PhysicalType::get_physical_type())
            .with_repetition(if C::OPTIONAL {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            })
            .with_logical_type(C::logical_type())
            .build()?;
        self.fields.push(Arc::new(field));
        let path = ColumnPath::from(name);
        self.properties = std::mem::take(&mut self.properties)
            .set_column_encoding(path.clone(), C::ENCODING)
            .set_column_dictionary_enabled(path, C::DICTIONARY);
        Ok(())
    }
}

struct RowGroupEncoder<'a, 'group, R, W: Write> {
    rows: &'a [R],
    group: &'a mut SerializedRowGroupWriter<'group, W>,
}

impl<R, W: Write + Send> ColumnVisitor<R> for RowGroupEncoder<'_, '_, R, W> {
    type Error = ParquetError;

    fn column<C: ParquetCell>(
        &mut self,
        name: &'static str,
        _: ColumnRule,
        get: impl Fn(&R) -> &C,
        _: impl Fn(&mut R) -> &mut C,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = self.group.next_column()? else {
            return Err(ParquetError::General(format!("no column {name}")));
        };
        let mut values: Vec<CellValue<C>> = Vec::with_capacity(BATCH_ROWS);
        let mut levels: Vec<i16> = Vec::with_capacity(BATCH_ROWS);
        for rows in self.rows.chunks(BATCH_ROWS) {
            values.clear();
            levels.clear();
            for row in rows {
                let value = get(row).to_physical();
                levels.push(value.is_some().into());
                values.extend(value);
            }
            let levels = C::OPTIONAL.then_some(&levels[..]);
            column
                .typed::<C::PhysicalType>()
                .write_batch(&values, levels, None)?;
        }
        column.close()
    }
}
