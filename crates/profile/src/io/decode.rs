//! One Parquet file to one table. Nothing in the file is believed: the schema, sizes
//! and every index are checked before anybody uses them.
use super::cell::{IndexedTable, ParquetCell};
use super::columns::{ColumnRule, ColumnVisitor, TableRow, MAX_NUMBER, MAX_PAGES};
use super::encode::schema;
use super::page_headers::CheckedFile;
use crate::error::ProfileError;
use crate::packed_rows::{PackedRow, PackedRows};
use parquet::column::reader::get_typed_column_reader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;

const BATCH_ROWS: usize = 1 << 14;
/// Heap memory that the texts of one column may take.
const MAX_TEXTS: usize = 1 << 30;

/// Rows of the tables that others point into; `None` where the table is missing.
pub(crate) type RowCounts = [Option<usize>; IndexedTable::COUNT];

/// What keeps the rows of a table.
pub(crate) trait TableList: Default + Extend<Self::Row> {
    type Row: TableRow;
}

impl<T: TableRow> TableList for Vec<T> {
    type Row = T;
}

impl<T: TableRow + PackedRow> TableList for PackedRows<T> {
    type Row = T;
}

/// Reads all rows of a table of `expected` rows.
pub(crate) fn decode_table<L: TableList>(
    file: File,
    path: &Path,
    expected: usize,
    counts: &mut RowCounts,
) -> Result<L, ProfileError> {
    let damaged = |what: String| ProfileError::Damaged {
        path: path.to_owned(),
        what,
    };
    let broken = |e: ParquetError| damaged(e.to_string());
    let file = CheckedFile::new(file).map_err(ProfileError::io("read", path))?;
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let order =
        find_columns::<L::Row>(reader.metadata().file_metadata().schema()).map_err(damaged)?;
    if expected > <L::Row as TableRow>::MAX_ROWS {
        return Err(damaged(format!(
            "{expected} rows are more than the {} possible",
            <L::Row as TableRow>::MAX_ROWS
        )));
    }
    if let Some(target) = <L::Row as TableRow>::DEFINES {
        counts[target as usize] = Some(expected);
    }
    let mut all = L::default();
    let mut decoder = TableDecoder {
        rows: Vec::new(),
        before: 0,
        end: 0,
        column: 0,
        totals: vec![(0, 0); order.len()],
        order,
        counts: *counts,
        group: None,
        path,
    };
    for (g, meta) in reader.metadata().row_groups().iter().enumerate() {
        for column in meta.columns() {
            let start = column.dictionary_page_offset().unwrap_or(0);
            if start < 0 || column.data_page_offset() < 0 || column.compressed_size() < 0 {
                return Err(damaged(format!("row group {g} has a negative offset")));
            }
        }
        let rows = usize::try_from(meta.num_rows()).unwrap_or(usize::MAX);
        decoder.end = rows;
        if decoder.before.saturating_add(rows) > expected {
            return Err(damaged(format!("it has more than {expected} rows")));
        }
        decoder.group = Some(reader.get_row_group(g).map_err(broken)?);
        decoder.column = 0;
        <L::Row as TableRow>::visit(&mut decoder)?;
        decoder.check_rows()?;
        decoder.before += decoder.rows.len();
        all.extend(decoder.rows.drain(..));
    }
    match decoder.before {
        found if found == expected => Ok(all),
        found => Err(damaged(format!("it has {found} rows of {expected}"))),
    }
}

/// Where each column of `T` is in the file; `None` where an older writer had none. Columns of later
/// writers are passed over.
fn find_columns<T: TableRow>(found: &Type) -> Result<Vec<Option<usize>>, String> {
    let (wanted, _) = schema::<T>().map_err(|e| e.to_string())?;
    if found.is_primitive() || found.get_fields().iter().any(|f| f.is_group()) {
        return Err("its columns are nested".to_string());
    }
    let position = |want: &Type| {
        let name = want.name();
        let at = found.get_fields().iter().position(|f| f.name() == name);
        let Some(at) = at else {
            let later = T::LATER.contains(&name);
            return later
                .then_some(None)
                .ok_or_else(|| format!("column {name} is missing"));
        };
        let have = &found.get_fields()[at];
        let alike = have.get_physical_type() == want.get_physical_type()
            && have.get_basic_info().has_repetition()
            && have.get_basic_info().repetition() == want.get_basic_info().repetition();
        if alike {
            Ok(Some(at))
        } else {
            Err(format!("column {name} has another type"))
        }
    };
    wanted.get_fields().iter().map(|w| position(w)).collect()
}

struct TableDecoder<'a, R> {
    /// Rows of the current row group, how many there are to be, and how many come before them.
    rows: Vec<R>,
    end: usize,
    before: usize,
    /// Which column is next, and where each is in the file.
    column: usize,
    order: Vec<Option<usize>>,
    /// Sum of the numbers and bytes of text so far, by column.
    totals: Vec<(u64, usize)>,
    counts: RowCounts,
    group: Option<Box<dyn RowGroupReader + 'a>>,
    path: &'a Path,
}

impl<R> TableDecoder<'_, R> {
    fn damaged(&self, name: &str, what: impl std::fmt::Display) -> ProfileError {
        ProfileError::Damaged {
            path: self.path.to_owned(),
            what: format!("column {name}: {what}"),
        }
    }

    /// Takes one value in: the rules that need the other tables or the whole column.
    fn accept<C: ParquetCell>(&mut self, cell: &C, rule: ColumnRule) -> Result<(), String> {
        let (sum, heap) = &mut self.totals[self.column];
        *heap += cell.heap_bytes();
        if *heap > MAX_TEXTS {
            return Err("its texts are too large together".to_string());
        }
        let Some(number) = cell.as_number() else {
            return Ok(());
        };
        if let Some(target) = C::REFERS {
            let rows = self.counts[target as usize].unwrap_or(0);
            if number >= rows as u64 {
                return Err(format!(
                    "{number} is not one of the {rows} {}",
                    target.name()
                ));
            }
        }
        *sum = sum.saturating_add(number);
        match rule {
            ColumnRule::Each if number >= MAX_NUMBER => Err(format!("{number} is too large")),
            ColumnRule::Sum if *sum >= MAX_NUMBER => {
                Err("the sum of the column is too large".to_string())
            }
            ColumnRule::Pages if *sum >= MAX_PAGES => {
                Err("the rows stand for too many pages".to_string())
            }
            _ => Ok(()),
        }
    }
}

impl<R: TableRow> TableDecoder<'_, R> {
    /// What must hold between the columns of a row.
    fn check_rows(&self) -> Result<(), ProfileError> {
        for (at, row) in self.rows.iter().enumerate() {
            row.check().map_err(|(column, what)| ProfileError::Row {
                path: self.path.to_owned(),
                row: self.before + at,
                column,
                what,
            })?;
        }
        Ok(())
    }
}

impl<R: Default> ColumnVisitor<R> for TableDecoder<'_, R> {
    type Error = ProfileError;

    fn column<C: ParquetCell>(
        &mut self,
        name: &'static str,
        rule: ColumnRule,
        _: impl Fn(&R) -> &C,
        get_mut: impl Fn(&mut R) -> &mut C,
    ) -> Result<(), ProfileError> {
        let Some(at) = self.order[self.column] else {
            self.column += 1;
            return Ok(());
        };
        let reader = self.group.as_ref().map(|g| g.get_column_reader(at));
        let reader = match reader {
            Some(Ok(reader)) => reader,
            Some(Err(e)) => return Err(self.damaged(name, e)),
            None => return Err(self.damaged(name, "no row group")),
        };
        let mut reader = get_typed_column_reader::<C::PhysicalType>(reader);
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let mut row = 0;
        while row < self.end {
            values.clear();
            levels.clear();
            let want = BATCH_ROWS.min(self.end - row);
            let (records, ..) = reader
                .read_records(want, Some(&mut levels), None, &mut values)
                .map_err(|e| self.damaged(name, e))?;
            if records == 0 {
                let all = self.before + row;
                return Err(self.damaged(name, format!("ends after row {all}")));
            }
            // Rows appear only as data for them does: a row count is just a claim.
            if self.rows.len() < row + records {
                self.rows.resize_with(row + records, R::default);
            }
            let mut values = values.drain(..);
            for k in 0..records {
                let null = C::OPTIONAL && levels.get(k) != Some(&1);
                let value = if null { None } else { values.next() };
                let at = row + k;
                let cell = C::from_physical(value).and_then(|c| self.accept(&c, rule).map(|()| c));
                *get_mut(&mut self.rows[at]) = cell.map_err(|what| ProfileError::Row {
                    path: self.path.to_owned(),
                    row: self.before + at,
                    column: name,
                    what,
                })?;
            }
            row += records;
        }
        self.column += 1;
        Ok(())
    }
}
