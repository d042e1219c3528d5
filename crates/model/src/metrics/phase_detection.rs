//! Phases of communication (OPT eq. 4): a new phase starts where the mean heterogeneity of
//! n slices differs from that of the n slices before by at least diff_min of itself.
//!
//! The condition holds for a stretch of slices around a change. The boundary is placed where in all
//! of the stretch the two windows differ most, which for a step is the step itself:
//!
//! ```text
//!   C_H   ____________/~~~~~~~~~~~~
//!            before  |  recent          boundary = start of `recent`
//! ```
//! Where a second change follows before the stretch ends, the smaller one is a boundary too if the
//! windows differ more there than on either side. A phase is at least n slices long, as in the
//! paper. Slices that sampling skipped are
//! left out of the windows; they belong to the phase around them.
use hither_profile::{Profile, Slice, SliceClock};
use std::ops::Range;

/// Slices per window (OPT 4.1.3).
pub const WINDOW: usize = 50;
/// Least relative difference (OPT 4.1.3).
pub const DIFF_MIN: f64 = 0.2;

/// Slices of a window at least: halves of fewer say nothing.
const FEWEST: u64 = 4;

/// As long as [`WINDOW`] slices of 10 ms, in slices of the profile: what is seen in a window does not depend on
/// how finely the run was cut.
#[must_use]
pub fn window_of_half_a_second(slices: &[Slice]) -> usize {
    const HALF_A_SECOND: u64 = WINDOW as u64 * 10_000_000;
    let traced = || slices.iter().filter(|s| s.traced && s.length > 0);
    let time: u64 = traced().map(|s| s.length).fold(0, u64::saturating_add);
    match time / traced().count().max(1) as u64 {
        0 => WINDOW,
        mean => (HALF_A_SECOND / mean).max(FEWEST) as usize,
    }
}

/// Slices whose partners are compared with those of as many before. Where slices are measured by instructions, a twentieth
/// of a second of the program's own time (under the tracer about half a second), so that neither
/// a faster machine nor other work on it makes other phases; else half a second.
#[must_use]
pub fn partner_window(profile: &Profile) -> usize {
    const OWN_TIME: u64 = 50_000_000;
    let options = &profile.meta.options;
    match (options.slice_clock, options.slice) {
        (SliceClock::Instructions, 1..) => (OWN_TIME / options.slice).max(FEWEST) as usize,
        _ => window_of_half_a_second(&profile.slices),
    }
}

/// The phases of a run as ranges of slices; together they are all slices. Fewer than
/// 2 n traced slices are one phase.
#[must_use]
pub fn communication_phases(slices: &[Slice], window: usize, diff_min: f64) -> Vec<Range<usize>> {
    let traced: Vec<usize> = (0..slices.len()).filter(|&s| slices[s].traced).collect();
    // prefix[t] = sum of the first t values, so that a window costs two look-ups.
    let mut prefix = vec![0.0; traced.len() + 1];
    for (t, &s) in traced.iter().enumerate() {
        prefix[t + 1] = prefix[t] + slices[s].heterogeneity;
    }
    let mean = |from: usize, to: usize| (prefix[to] - prefix[from]) / (to - from) as f64;
    let differs = |t: usize| -> f64 {
        let recent = mean(t - window, t);
        let difference = (recent - mean(t - 2 * window, t - window)).abs();
        let relative = if recent > 0.0 {
            difference / recent
        } else if difference > 0.0 {
            f64::INFINITY
        } else {
            0.0
        };
        if relative >= diff_min {
            difference
        } else {
            0.0
        }
    };
    let starts = phase_starts(traced.len(), window, differs);
    ranges_between(starts.into_iter().map(|t| traced[t]), slices.len())
}

/// Where phases of at least `window` slices begin, of so many slices, but for the first. `differs`: by how much the
/// `window` slices that end before a slice differ from as many before them, 0 for not enough.
#[must_use]
pub fn phase_starts(slices: usize, window: usize, differs: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut t = 2 * window;
    while window > 0 && t <= slices {
        if differs(t) == 0.0 {
            t += 1;
            continue;
        }
        let after = (t..=slices).find(|&t| differs(t) == 0.0);
        let stretch = t..after.unwrap_or(slices + 1);
        for peak in peaks(stretch, window, &differs) {
            starts.push(peak - window);
            // Both windows of the next comparison lie in the new phase.
            t = peak + window;
        }
    }
    starts
}

/// All of so many slices, cut where phases begin.
#[must_use]
pub fn ranges_between(starts: impl Iterator<Item = usize>, slices: usize) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    for boundary in starts {
        out.push(start..boundary);
        start = boundary;
    }
    if start < slices {
        out.push(start..slices);
    }
    out
}

/// Slices of a profile that were traced. Phases can be told apart from two windows on.
#[must_use]
pub fn traced_slices(profile: &Profile) -> usize {
    profile.slices.iter().filter(|s| s.traced).count()
}

/// Where a value is largest in a stretch, and where it is in what lies a window and more before
/// that, if it is no slope that leads up to it, and so on; in order.
fn peaks(stretch: Range<usize>, window: usize, value: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut end = stretch.end;
    while stretch.start < end {
        // Of equal ones the first.
        let peak =
            (stretch.start..end).fold(
                stretch.start,
                |best, t| {
                    if value(t) > value(best) {
                        t
                    } else {
                        best
                    }
                },
            );
        if peak + 1 == end && !found.is_empty() {
            break;
        }
        found.push(peak);
        end = (peak + 1).saturating_sub(window);
    }
    found.reverse();
    found
}
