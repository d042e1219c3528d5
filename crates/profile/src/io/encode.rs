//! One table to one Parquet file.
use super::cell::{Cell, Value};
use super::tables::{Rule, Table, Visitor};
use parquet::basic::{Compression, Repetition};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

/// Rows per row group: a reader that filters by slice or region skips whole groups.
const GROUP_ROWS: usize = 1 << 20;
/// Rows handed to Parquet at a time.
const BATCH_ROWS: usize = 1 << 14;

/// Writes all rows of a table.
pub(crate) fn encode<T: Table, W: Write + Send>(rows: &[T], to: W) -> Result<(), ParquetError> {
    let rows = sorted(rows);
    let (schema, properties) = schema::<T>()?;
    let mut writer = SerializedFileWriter::new(to, schema, properties)?;
    for rows in rows.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        T::visit(&mut Encoder {
            rows,
            group: &mut group,
        })?;
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn sorted<T: Table>(rows: &[T]) -> Cow<'_, [T]> {
    if rows.is_sorted_by_key(T::key) {
        return Cow::Borrowed(rows);
    }
    let mut rows = rows.to_vec();
    rows.sort_by_key(T::key);
    Cow::Owned(rows)
}

/// The columns of `T` as Parquet sees them, and how each is encoded.
pub(crate) fn schema<T: Table>() -> Result<(TypePtr, WriterPropertiesPtr), ParquetError> {
    let mut schema = Schema {
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

struct Schema {
    fields: Vec<TypePtr>,
    properties: WriterPropertiesBuilder,
}

impl<R> Visitor<R> for Schema {
    type Error = ParquetError;

    fn column<C: Cell>(
        &mut self,
        name: &'static str,
        _: Rule,
        _: impl Fn(&R) -> &C,
        _: impl Fn(&mut R) -> &mut C,
    ) -> Result<(), ParquetError> {
        let field = Type::primitive_type_builder(name, C::Physical::get_physical_type())
            .with_repetition(if C::OPTIONAL {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            })
            .with_logical_type(C::logical())
            .build()?;
        self.fields.push(Arc::new(field));
        let path = ColumnPath::from(name);
        self.properties = std::mem::take(&mut self.properties)
            .set_column_encoding(path.clone(), C::ENCODING)
            .set_column_dictionary_enabled(path, C::DICTIONARY);
        Ok(())
    }
}

struct Encoder<'a, 'group, R, W: Write> {
    rows: &'a [R],
    group: &'a mut SerializedRowGroupWriter<'group, W>,
}

impl<R, W: Write + Send> Visitor<R> for Encoder<'_, '_, R, W> {
    type Error = ParquetError;

    fn column<C: Cell>(
        &mut self,
        name: &'static str,
        _: Rule,
        get: impl Fn(&R) -> &C,
        _: impl Fn(&mut R) -> &mut C,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = self.group.next_column()? else {
            return Err(ParquetError::General(format!("no column {name}")));
        };
        let mut values: Vec<Value<C>> = Vec::with_capacity(BATCH_ROWS);
        let mut levels: Vec<i16> = Vec::with_capacity(BATCH_ROWS);
        for rows in self.rows.chunks(BATCH_ROWS) {
            values.clear();
            levels.clear();
            for row in rows {
                let value = get(row).put();
                levels.push(value.is_some().into());
                values.extend(value);
            }
            let levels = C::OPTIONAL.then_some(&levels[..]);
            column
                .typed::<C::Physical>()
                .write_batch(&values, levels, None)?;
        }
        column.close()
    }
}
