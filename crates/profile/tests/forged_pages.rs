//! A page that says it is large does not make its reader large. Alone in its process, whose peak of
//! memory it looks at.
mod common;
use hither_profile::{read, write};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::{self, File};
use std::path::Path;

/// Bytes of the varint at a place.
fn varint_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| byte >= 0x80).count() + 1
}

/// Gives the first page of a table the header of one that expands to 2 GiB. The header becomes longer
/// and the page shorter.
fn forge_page(table: &Path) {
    let reader = SerializedFileReader::new(File::open(table).unwrap()).unwrap();
    let column = reader.metadata().row_group(0).column(0);
    let start = column
        .dictionary_page_offset()
        .unwrap_or(column.data_page_offset());
    let start = usize::try_from(start).unwrap();
    let mut bytes = fs::read(table).unwrap();
    assert_eq!([bytes[start], bytes[start + 2]], [0x15; 2]);
    let expanded = start + 3;
    let compressed = expanded + varint_bytes(&bytes[expanded..]) + 1;
    let behind = compressed + varint_bytes(&bytes[compressed..]);
    let size = bytes[compressed..behind]
        .iter()
        .rev()
        .fold(0u64, |size, byte| size << 7 | u64::from(byte & 0x7f))
        / 2;
    let grown = 5 - varint_bytes(&bytes[expanded..]);
    let size = 2 * (size - grown as u64);
    let width = behind - compressed;
    let varint = (0..width).map(|n| {
        let more = if n + 1 < width { 0x80 } else { 0 };
        (size >> (7 * n)) as u8 & 0x7f | more
    });
    let mut header = vec![0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15];
    header.extend(varint);
    // The rest of the header, to where its page begins.
    header.extend(&bytes[behind..behind + 24]);
    bytes.splice(expanded..expanded + header.len(), header);
    fs::write(table, bytes).unwrap();
}

fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

#[test]
fn a_forged_page_size_takes_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    write(&common::profile(3, 4000), dir.path()).unwrap();
    for table in ["pages", "comm", "threads"] {
        let file = dir.path().join(format!("{table}.parquet"));
        let good = fs::read(&file).unwrap();
        forge_page(&file);
        assert_eq!(fs::read(&file).unwrap().len(), good.len());
        let before = peak();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("2147483647 when expanded"), "{error}");
        assert!(peak() - before < 256 << 20, "{} MiB", peak() >> 20);
        fs::write(&file, good).unwrap();
    }
    read(dir.path()).unwrap();
}
