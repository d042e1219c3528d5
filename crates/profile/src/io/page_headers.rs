//! Parquet pages say in a header how large they are once expanded, and the library makes room for
//! that before it looks at the page. So headers are looked at first: what no page of this size can
//! expand to is damage.
//!
//! A header is a Thrift structure in the compact protocol, `PageHeader` in Parquet's own description
//! of its format.
use crate::bursts::framing::ByteReader;
use crate::varint::unzigzag;
use parquet::basic::PageType;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// LZ4 makes at most 255 bytes out of one; other ways of writing fewer.
const MOST_EXPANSION: u64 = 256;
/// Bytes beside, so that small pages fit.
const GRACE: u64 = 1024;
/// Writers make pages of a megabyte, a few of up to a hundred.
const MOST_PAGE: u64 = 128 << 20;
/// Each value of a dictionary takes room before it is read.
const MOST_DICTIONARY: u64 = 4 << 20;
/// What is read of a header: few are longer than the first.
const HEADER_BYTES: [usize; 2] = [4 << 10, 256 << 10];
const MOST_NESTED: u32 = 16;
/// Magic and length of the metadata, at the end of the file.
const FOOTER: u64 = 8;

/// A file whose page headers are checked when they are read.
pub(crate) struct CheckedFile {
    file: File,
    length: u64,
}

impl CheckedFile {
    pub(crate) fn new(file: File) -> io::Result<CheckedFile> {
        let length = file.metadata()?.len();
        Ok(CheckedFile { file, length })
    }
}

impl Length for CheckedFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for CheckedFile {
    type T = CheckedRead;

    fn get_read(&self, start: u64) -> Result<CheckedRead> {
        let checked = start.checked_add(FOOTER) == Some(self.length);
        Ok(CheckedRead {
            file: self.file.try_clone()?,
            at: start,
            checked,
            buffer: Vec::new(),
            taken: 0,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        let end = start.checked_add(length as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are not all in the file"
            )));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// What the library reads from a place on: a page header.
pub(crate) struct CheckedRead {
    file: File,
    /// Where the buffer ends in the file.
    at: u64,
    checked: bool,
    buffer: Vec<u8>,
    taken: usize,
}

impl CheckedRead {
    fn fill(&mut self, room: usize) -> io::Result<()> {
        let before = self.buffer.len();
        self.buffer.resize(room, 0);
        let read = self.file.read_at(&mut self.buffer[before..], self.at)?;
        self.buffer.truncate(before + read);
        self.at += read as u64;
        Ok(())
    }

    fn check(&mut self) -> io::Result<()> {
        for room in HEADER_BYTES {
            self.fill(room)?;
            let header = PageSizes::read(&self.buffer);
            if let Some(header) = header {
                return header.check().map_err(io::Error::other);
            }
        }
        Err(io::Error::other("a page has no header"))
    }
}

impl Read for CheckedRead {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if !self.checked {
            self.checked = true;
            self.check()?;
        }
        if self.taken == self.buffer.len() {
            self.buffer.clear();
            self.taken = 0;
            self.fill(HEADER_BYTES[0])?;
        }
        let read = (&self.buffer[self.taken..]).read(to)?;
        self.taken += read;
        Ok(read)
    }
}

/// What a header says of the size of its page.
#[derive(Debug, Default, PartialEq)]
struct PageSizes {
    kind: i64,
    expanded: i64,
    compressed: i64,
    dictionary: i64,
}

impl PageSizes {
    /// `None` where the header does not end in these bytes, or is none.
    fn read(bytes: &[u8]) -> Option<PageSizes> {
        let mut sizes = PageSizes::default();
        let mut thrift = CompactBytes(ByteReader::new(bytes));
        let mut last = 0;
        while let Some((id, kind)) = thrift.field(last)? {
            match (id, kind) {
                (1, I32) => sizes.kind = thrift.number()?,
                (2, I32) => sizes.expanded = thrift.number()?,
                (3, I32) => sizes.compressed = thrift.number()?,
                (7, STRUCT) => sizes.dictionary = thrift.first_number()?,
                _ => thrift.skip(kind, 0)?,
            }
            last = id;
        }
        Some(sizes)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let size = |number: i64| u64::try_from(number).map_err(|_| "a page of negative size");
        let [expanded, compressed] = [size(self.expanded)?, size(self.compressed)?];
        let possible = compressed.saturating_mul(MOST_EXPANSION) + GRACE;
        if expanded > possible.min(MOST_PAGE) {
            return Err(format!(
                "a page of {compressed} bytes is to have {expanded} when expanded"
            ));
        }
        let dictionary = self.kind == PageType::DICTIONARY_PAGE as i64;
        let values = size(self.dictionary)?;
        if dictionary && values > expanded.saturating_mul(8).min(MOST_DICTIONARY) {
            return Err(format!("a dictionary of {values} values"));
        }
        Ok(())
    }
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// What is left of a structure in Thrift's compact protocol.
struct CompactBytes<'a>(ByteReader<'a>);

impl CompactBytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.0.byte()
    }

    fn take(&mut self, bytes: u64) -> Option<()> {
        self.0.take(usize::try_from(bytes).ok()?).map(drop)
    }

    fn varint(&mut self) -> Option<u64> {
        self.0.varint()
    }

    fn number(&mut self) -> Option<i64> {
        self.varint().map(unzigzag)
    }

    /// Number and type of the next field, `Some(None)` after the last. They are in order: of one that
    /// came twice, readers take the second.
    fn field(&mut self, last: i64) -> Option<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let id = match head >> 4 {
            0 => self.number()?,
            delta => last.checked_add(delta.into())?,
        };
        (id > last).then_some(Some((id, head & 0xf)))
    }

    /// The first field of a structure, if it is a number; else 0.
    fn first_number(&mut self) -> Option<i64> {
        let mut first = 0;
        let mut last = 0;
        while let Some((id, kind)) = self.field(last)? {
            match (id, kind) {
                (1, I32) => first = self.number()?,
                _ => self.skip(kind, 1)?,
            }
            last = id;
        }
        Some(first)
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > MOST_NESTED {
            return None;
        }
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.take(1),
            4..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.take(8),
            BINARY => {
                let length = self.varint()?;
                self.take(length)
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => count.into(),
                };
                // In a list, each has a byte at least.
                let element = match head & 0xf {
                    TRUE | FALSE => BYTE,
                    other => other,
                };
                (0..count).try_for_each(|_| self.skip(element, depth + 1))
            }
            STRUCT => {
                let mut last = 0;
                while let Some((id, kind)) = self.field(last)? {
                    self.skip(kind, depth + 1)?;
                    last = id;
                }
                Some(())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(fields: &[u8]) -> Option<std::result::Result<(), String>> {
        PageSizes::read(fields).map(|sizes| sizes.check())
    }

    #[test]
    fn sizes_that_no_page_has_are_refused() {
        // Data page, 2000 bytes when expanded, 100 bytes.
        let plain = [0x15, 0, 0x15, 0xa0, 0x1f, 0x15, 0xc8, 0x01, 0];
        assert_eq!(header(&plain), Some(Ok(())));
        for cut in 0..plain.len() {
            assert_eq!(header(&plain[..cut]), None, "{cut}");
        }
        // 2 GiB - 1 out of 100 bytes.
        let mut large = vec![0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f];
        large.extend([0x15, 0xc8, 0x01, 0]);
        assert!(header(&large).unwrap().unwrap_err().contains("2147483647"));
        // The same after a size that would do.
        let mut twice = plain[..8].to_vec();
        twice.extend([0x05, 0x04, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0]);
        assert_eq!(header(&twice), None);
        // A dictionary of 2^31 - 1 values, behind a list that is passed over.
        let mut dictionary = vec![0x15, 4, 0x15, 0xa0, 0x1f, 0x15, 0xc8, 0x01];
        dictionary.extend([0x29, 0x35, 2, 2, 2]);
        dictionary.extend([0x2c, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
        let error = header(&dictionary).unwrap().unwrap_err();
        assert!(error.contains("dictionary"), "{error}");
    }

    #[test]
    fn what_is_nested_without_end_is_refused() {
        let mut deep = vec![0x15, 0, 0x15, 2, 0x15, 2, 0x2c];
        deep.extend([0x1c; 100]);
        deep.extend([0; 110]);
        assert_eq!(header(&deep), None);
        // A list of 2^60 structures, which it has no bytes for.
        let mut long = vec![0x15, 0, 0x15, 2, 0x15, 2, 0x29, 0xfc];
        long.extend([0xff; 8]);
        long.extend([0x0f, 0, 0]);
        assert_eq!(header(&long), None);
    }
}
