//! How one field of a row looks in Parquet: physical and logical type, whether it may
//! be null, which table it points into.
use crate::ids::{ObjectIx, PageNo, ProcessIx, RegionIx, SliceIx, ThreadIx};
use crate::tables::{ObjectKind, RegionKind};
use parquet::basic::{Encoding, LogicalType};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};

/// Longest text in a cell, in bytes.
const MAX_TEXT: usize = 1 << 20;

/// What an index counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexedTable {
    Processes,
    Threads,
    Slices,
    Regions,
    Objects,
}

impl IndexedTable {
    pub(crate) const COUNT: usize = 5;

    /// The table (or list of `profile.json`) whose rows are counted.
    pub(crate) fn name(self) -> &'static str {
        ["processes", "threads", "slices", "regions", "objects"][self as usize]
    }
}

pub(crate) type CellValue<C> = <<C as ParquetCell>::PhysicalType as DataType>::T;

pub(crate) trait ParquetCell: Sized {
    type PhysicalType: DataType;
    /// Encoding of the values, after the dictionary where there is one.
    const ENCODING: Encoding;
    const DICTIONARY: bool;
    const OPTIONAL: bool = false;
    const REFERS: Option<IndexedTable> = None;

    fn logical_type() -> Option<LogicalType>;
    /// `None` is null.
    fn to_physical(&self) -> Option<CellValue<Self>>;
    fn from_physical(value: Option<CellValue<Self>>) -> Result<Self, String>;
    /// The index, for cells with [`ParquetCell::REFERS`]; the number, for counts.
    fn as_number(&self) -> Option<u64> {
        None
    }
    /// Bytes of heap memory, so that a small file cannot ask for a huge amount.
    fn heap_bytes(&self) -> usize {
        0
    }
}

fn not_null<T>(value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| "a value is missing".to_string())
}

macro_rules! index {
    ($($name:ty => $refers:expr),*) => {$(
        impl ParquetCell for $name {
            type PhysicalType = Int32Type;
            const ENCODING: Encoding = Encoding::DELTA_BINARY_PACKED;
            const DICTIONARY: bool = false;
            const REFERS: Option<IndexedTable> = $refers;
            fn logical_type() -> Option<LogicalType> {
                Some(LogicalType::integer(32, false))
            }
            fn to_physical(&self) -> Option<i32> {
                Some(self.0 as i32)
            }
            fn from_physical(value: Option<i32>) -> Result<Self, String> {
                not_null(value).map(|v| Self(v as u32))
            }
            fn as_number(&self) -> Option<u64> {
                Some(self.0.into())
            }
        }
    )*};
}
index!(
    ProcessIx => Some(IndexedTable::Processes),
    ThreadIx => Some(IndexedTable::Threads),
    SliceIx => Some(IndexedTable::Slices),
    RegionIx => Some(IndexedTable::Regions),
    ObjectIx => Some(IndexedTable::Objects),
    PageNo => None
);

macro_rules! plain {
    ($name:ty, $physical:ident, $stored:ty, $logical:expr, $encoding:ident, $dictionary:literal, $number:expr, $check:expr) => {
        impl ParquetCell for $name {
            type PhysicalType = $physical;
            const ENCODING: Encoding = Encoding::$encoding;
            const DICTIONARY: bool = $dictionary;
            fn logical_type() -> Option<LogicalType> {
                $logical
            }
            fn to_physical(&self) -> Option<CellValue<Self>> {
                Some(*self as $stored)
            }
            fn from_physical(value: Option<CellValue<Self>>) -> Result<Self, String> {
                let value = not_null(value)? as $name;
                let check: fn($name) -> Result<$name, String> = $check;
                check(value)
            }
            fn as_number(&self) -> Option<u64> {
                let number: fn($name) -> Option<u64> = $number;
                number(*self)
            }
        }
    };
}
plain!(
    u32,
    Int32Type,
    i32,
    Some(LogicalType::integer(32, false)),
    DELTA_BINARY_PACKED,
    false,
    |v| Some(v.into()),
    Ok
);
plain!(
    u64,
    Int64Type,
    i64,
    Some(LogicalType::integer(64, false)),
    DELTA_BINARY_PACKED,
    true,
    Some,
    Ok
);
plain!(
    i32,
    Int32Type,
    i32,
    Some(LogicalType::integer(32, true)),
    DELTA_BINARY_PACKED,
    false,
    |_| None,
    Ok
);
plain!(bool, BoolType, bool, None, PLAIN, false, |_| None, Ok);
plain!(f64, DoubleType, f64, None, PLAIN, false, |_| None, |v| {
    if v.is_finite() {
        Ok(v)
    } else {
        Err(format!("{v} is not a finite number"))
    }
});

impl ParquetCell for String {
    type PhysicalType = ByteArrayType;
    const ENCODING: Encoding = Encoding::DELTA_BYTE_ARRAY;
    const DICTIONARY: bool = true;
    fn logical_type() -> Option<LogicalType> {
        Some(LogicalType::String)
    }
    fn to_physical(&self) -> Option<ByteArray> {
        // A longer text would make the profile unreadable.
        let mut end = self.len().min(MAX_TEXT);
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        Some(ByteArray::from(&self[..end]))
    }
    fn from_physical(value: Option<ByteArray>) -> Result<Self, String> {
        let value = not_null(value)?;
        if value.len() > MAX_TEXT {
            return Err(format!("a text of {} bytes is too long", value.len()));
        }
        let text = value.as_utf8().map_err(|_| "a text is not UTF-8")?;
        Ok(text.to_owned())
    }
    fn heap_bytes(&self) -> usize {
        self.len()
    }
}

macro_rules! optional {
    ($($inner:ty),*) => {$(
        impl ParquetCell for Option<$inner> {
            type PhysicalType = <$inner as ParquetCell>::PhysicalType;
            const ENCODING: Encoding = <$inner as ParquetCell>::ENCODING;
            const DICTIONARY: bool = <$inner as ParquetCell>::DICTIONARY;
            const OPTIONAL: bool = true;
            const REFERS: Option<IndexedTable> = <$inner as ParquetCell>::REFERS;
            fn logical_type() -> Option<LogicalType> {
                <$inner>::logical_type()
            }
            fn to_physical(&self) -> Option<CellValue<Self>> {
                self.as_ref().and_then(ParquetCell::to_physical)
            }
            fn from_physical(value: Option<CellValue<Self>>) -> Result<Self, String> {
                value.map(|v| <$inner>::from_physical(Some(v))).transpose()
            }
            fn as_number(&self) -> Option<u64> {
                self.as_ref().and_then(ParquetCell::as_number)
            }
        }
    )*};
}
optional!(ThreadIx, ObjectIx);

macro_rules! word {
    ($name:ident { $($variant:ident = $word:literal),* }) => {
        impl ParquetCell for $name {
            type PhysicalType = ByteArrayType;
            const ENCODING: Encoding = Encoding::DELTA_BYTE_ARRAY;
            const DICTIONARY: bool = true;
            fn logical_type() -> Option<LogicalType> {
                Some(LogicalType::String)
            }
            fn to_physical(&self) -> Option<ByteArray> {
                Some(ByteArray::from(match self { $($name::$variant => $word),* }))
            }
            fn from_physical(value: Option<ByteArray>) -> Result<Self, String> {
                match not_null(value)?.data() {
                    $(v if v == $word.as_bytes() => Ok($name::$variant),)*
                    v => Err(format!("unknown kind {:?}", String::from_utf8_lossy(&v[..v.len().min(32)]))),
                }
            }
        }
    };
}
word!(RegionKind { Elf = "elf", Brk = "brk", Mmap = "mmap", Stack = "stack", Shared = "shared", Other = "other" });
word!(ObjectKind { Static = "static", Heap = "heap", Mmap = "mmap", Stack = "stack", Shared = "shared", ThreadLocal = "thread-local" });
