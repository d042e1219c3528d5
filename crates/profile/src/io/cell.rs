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
pub(crate) enum Target {
    Processes,
    Threads,
    Slices,
    Regions,
    Objects,
}

impl Target {
    pub(crate) const COUNT: usize = 5;

    /// The table (or list of `profile.json`) whose rows are counted.
    pub(crate) fn name(self) -> &'static str {
        ["processes", "threads", "slices", "regions", "objects"][self as usize]
    }
}

pub(crate) type Value<C> = <<C as Cell>::Physical as DataType>::T;

pub(crate) trait Cell: Sized {
    type Physical: DataType;
    /// Encoding of the values, after the dictionary where there is one.
    const ENCODING: Encoding;
    const DICTIONARY: bool;
    const OPTIONAL: bool = false;
    const REFERS: Option<Target> = None;

    fn logical() -> Option<LogicalType>;
    /// `None` is null.
    fn put(&self) -> Option<Value<Self>>;
    fn take(value: Option<Value<Self>>) -> Result<Self, String>;
    /// The index, for cells with [`Cell::REFERS`]; the number, for counts.
    fn number(&self) -> Option<u64> {
        None
    }
    /// Bytes of heap memory, so that a small file cannot ask for a huge amount.
    fn heap(&self) -> usize {
        0
    }
}

fn not_null<T>(value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| "a value is missing".to_string())
}

macro_rules! index {
    ($($name:ty => $refers:expr),*) => {$(
        impl Cell for $name {
            type Physical = Int32Type;
            const ENCODING: Encoding = Encoding::DELTA_BINARY_PACKED;
            const DICTIONARY: bool = false;
            const REFERS: Option<Target> = $refers;
            fn logical() -> Option<LogicalType> {
                Some(LogicalType::integer(32, false))
            }
            fn put(&self) -> Option<i32> {
                Some(self.0 as i32)
            }
            fn take(value: Option<i32>) -> Result<Self, String> {
                not_null(value).map(|v| Self(v as u32))
            }
            fn number(&self) -> Option<u64> {
                Some(self.0.into())
            }
        }
    )*};
}
index!(
    ProcessIx => Some(Target::Processes),
    ThreadIx => Some(Target::Threads),
    SliceIx => Some(Target::Slices),
    RegionIx => Some(Target::Regions),
    ObjectIx => Some(Target::Objects),
    PageNo => None
);

macro_rules! plain {
    ($name:ty, $physical:ident, $stored:ty, $logical:expr, $encoding:ident, $dictionary:literal, $number:expr, $check:expr) => {
        impl Cell for $name {
            type Physical = $physical;
            const ENCODING: Encoding = Encoding::$encoding;
            const DICTIONARY: bool = $dictionary;
            fn logical() -> Option<LogicalType> {
                $logical
            }
            fn put(&self) -> Option<Value<Self>> {
                Some(*self as $stored)
            }
            fn take(value: Option<Value<Self>>) -> Result<Self, String> {
                let value = not_null(value)? as $name;
                let check: fn($name) -> Result<$name, String> = $check;
                check(value)
            }
            fn number(&self) -> Option<u64> {
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

impl Cell for String {
    type Physical = ByteArrayType;
    const ENCODING: Encoding = Encoding::DELTA_BYTE_ARRAY;
    const DICTIONARY: bool = true;
    fn logical() -> Option<LogicalType> {
        Some(LogicalType::String)
    }
    fn put(&self) -> Option<ByteArray> {
        // A longer text would make the profile unreadable; nobody reads that far.
        let mut end = self.len().min(MAX_TEXT);
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        Some(ByteArray::from(&self[..end]))
    }
    fn take(value: Option<ByteArray>) -> Result<Self, String> {
        let value = not_null(value)?;
        if value.len() > MAX_TEXT {
            return Err(format!("a text of {} bytes is too long", value.len()));
        }
        let text = value.as_utf8().map_err(|_| "a text is not UTF-8")?;
        Ok(text.to_owned())
    }
    fn heap(&self) -> usize {
        self.len()
    }
}

macro_rules! optional {
    ($($inner:ty),*) => {$(
        impl Cell for Option<$inner> {
            type Physical = <$inner as Cell>::Physical;
            const ENCODING: Encoding = <$inner as Cell>::ENCODING;
            const DICTIONARY: bool = <$inner as Cell>::DICTIONARY;
            const OPTIONAL: bool = true;
            const REFERS: Option<Target> = <$inner as Cell>::REFERS;
            fn logical() -> Option<LogicalType> {
                <$inner>::logical()
            }
            fn put(&self) -> Option<Value<Self>> {
                self.as_ref().and_then(Cell::put)
            }
            fn take(value: Option<Value<Self>>) -> Result<Self, String> {
                value.map(|v| <$inner>::take(Some(v))).transpose()
            }
            fn number(&self) -> Option<u64> {
                self.as_ref().and_then(Cell::number)
            }
        }
    )*};
}
optional!(ThreadIx, ObjectIx);

macro_rules! word {
    ($name:ident { $($variant:ident = $word:literal),* }) => {
        impl Cell for $name {
            type Physical = ByteArrayType;
            const ENCODING: Encoding = Encoding::DELTA_BYTE_ARRAY;
            const DICTIONARY: bool = true;
            fn logical() -> Option<LogicalType> {
                Some(LogicalType::String)
            }
            fn put(&self) -> Option<ByteArray> {
                Some(ByteArray::from(match self { $($name::$variant => $word),* }))
            }
            fn take(value: Option<ByteArray>) -> Result<Self, String> {
                match not_null(value)?.data() {
                    $(v if v == $word.as_bytes() => Ok($name::$variant),)*
                    v => Err(format!("unknown kind {:?}", String::from_utf8_lossy(&v[..v.len().min(32)]))),
                }
            }
        }
    };
}
word!(RegionKind { Elf = "elf", Brk = "brk", Mmap = "mmap", Stack = "stack", Shared = "shared", Other = "other" });
word!(ObjectKind { Static = "static", Heap = "heap", Mmap = "mmap", Stack = "stack", Shared = "shared" });
