//! Profile -> the panels of the page, one file per panel. Pure.
mod cluster_order;
pub mod communication;
pub mod compare;
mod page_usage;
pub mod safe_text;
pub mod source_quotes;
mod structure_pairs;
pub mod structures;

/// Significant digits of a figure over time: more than a picture shows.
const DIGITS: i32 = 4;

/// Rounded, so that JSON stays short.
fn round_to_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    if scale.is_finite() {
        (value * scale).round() / scale
    } else {
        value
    }
}
