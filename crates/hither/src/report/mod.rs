//! Any artefact -> one HTML file that needs nothing else: no network, no server.
//!
//! `page.rs` is the data, `build/` makes it from a profile, `html.rs` puts it into a file
//! together with the bundle of `report-ui/`. What the metrics say comes in from `app/assessment`.
pub mod build;
mod html;
mod packed_grid;
pub mod page;
mod page_structures;
mod sparse_table;

pub use html::render_html;

#[cfg(test)]
mod tests;
