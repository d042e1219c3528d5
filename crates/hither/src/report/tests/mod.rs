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
use hither_profile::{varint::take_varint, Profile};

fn panel(profile: &Profile) -> StructuresPanel {
    let (rows, regions) = (&profile.pages, &profile.regions);
    let table = PageAccessTable::from_rows(rows, regions, PageSize::K4);
    structures_panel(profile, &table)
}

/// What the browser makes of a grid: (column, row, count), and the widths of its columns.
fn unpack(grid: &PackedGrid) -> Vec<(u32, u32, u64)> {
    let packed = STANDARD.decode(&grid.data).expect("base64");
    let bytes = miniz_oxide::inflate::decompress_to_vec(&packed).expect("raw deflate");
    let mut left = &bytes[..];
    let mut next = || take_varint(&mut left).expect("a number");
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
        assert!(left.is_empty());
    } else {
        let codes = left;
        assert_eq!(codes.len(), cells.len());
        for (cell, code) in cells.iter_mut().zip(codes) {
            cell.2 = (f64::from(*code) * grid.step).exp().round() as u64;
        }
    }
    cells
}
