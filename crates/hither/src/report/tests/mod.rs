//! Tests of the page's data and file; the page itself is tested in a browser,
//! crates/hither/tests/report.
mod build;
mod forecast;
mod html;
mod pack;
mod sample;

use super::build::structures::structures_panel;
use super::packed_grid::PackedGrid;
use super::page::StructuresPanel;
use base64::{engine::general_purpose::STANDARD, Engine};
use hither_model::metrics::page_access::PageAccessTable;
use hither_model::metrics::PageSize;
use hither_profile::Profile;

fn panel(profile: &Profile) -> StructuresPanel {
    let (rows, regions) = (&profile.pages, &profile.regions);
    let table = PageAccessTable::from_rows(rows, regions, PageSize::K4);
    structures_panel(profile, &table)
}

/// What the browser makes of a grid: (column, row, count), and the widths of its columns.
fn unpack(grid: &PackedGrid) -> Vec<(u32, u32, u64)> {
    let packed = STANDARD.decode(&grid.data).expect("base64");
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
