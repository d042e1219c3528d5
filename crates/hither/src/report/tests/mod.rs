//! Tests of the page's data and file; the page itself is tested in a browser,
//! crates/hither/tests/report.
mod build;
mod html;
mod pack;
mod sample;

use super::page::Grid;

/// What the browser makes of a grid: (column, row, count), and the widths of its columns.
fn unpack(grid: &Grid) -> Vec<(u32, u32, u64)> {
    let packed = unbase64(&grid.data);
    let bytes = miniz_oxide::inflate::decompress_to_vec(&packed).expect("raw deflate");
    let mut at = 0;
    let mut next = || {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = bytes[at];
            at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    };
    let widths: Vec<u64> = (0..grid.columns).map(|_| next()).collect();
    let mut cells = Vec::new();
    for (column, width) in (0..).zip(&widths) {
        let mut row = 0;
        for _ in 0..*width {
            row += next() as u32;
            cells.push((column, row, 0));
        }
    }
    assert_eq!(cells.len(), grid.cells as usize);
    if grid.step == 0.0 {
        cells.iter_mut().for_each(|cell| cell.2 = next());
        assert_eq!(at, bytes.len());
    } else {
        let codes = &bytes[at..];
        assert_eq!(codes.len(), cells.len());
        for (cell, code) in cells.iter_mut().zip(codes) {
            cell.2 = (f64::from(*code) * grid.step).exp().round() as u64;
        }
    }
    cells
}

fn unbase64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("{c} is no digit"),
    };
    let mut out = Vec::new();
    for chunk in text.as_bytes().chunks(4) {
        let given = chunk.iter().filter(|c| **c != b'=').count();
        let digits = chunk[..given].iter().map(|c| u32::from(digit(*c)));
        let bits = digits.fold(0, |bits, d| bits << 6 | d) << (6 * (4 - given));
        out.extend_from_slice(&bits.to_be_bytes()[1..given]);
    }
    out
}
