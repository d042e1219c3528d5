//! Which placement is best, by how much, and how sure that is, in a sentence.
use hither_profile::{Predicted, Ratio};

use super::forecast::Played;
use super::model::Model;
use crate::cli::style::percent;

/// Less than this is no difference worth a word.
const NOTICEABLE: f64 = 0.005;

/// The fastest, the first of equals.
pub fn best(all: &[Predicted]) -> usize {
    let time = |at: &usize| all[*at].amounts.time;
    (0..all.len())
        .min_by(|a, b| time(a).total_cmp(&time(b)))
        .unwrap_or(0)
}

/// `played`: in the order of `all`.
pub fn sentence(all: &[Predicted], played: &[&Played], model: &Model) -> String {
    let at = best(all);
    let (Some(first), Some(fastest)) = (all.first(), all.get(at)) else {
        return "There is nothing to compare.".to_owned();
    };
    let told_apart = |other: usize| {
        let ratio = played[other].time_to(played[at], model);
        ratio.is_some_and(|r| is_sure(r) && r.value - 1.0 >= NOTICEABLE)
    };
    let behind = (0..all.len()).filter(|other| *other != at && !told_apart(*other));
    let alike: Vec<&str> = behind.map(|other| all[other].name.as_str()).collect();
    let Some(time) = fastest.relative.time.filter(|_| at > 0) else {
        return match all.len() {
            1 => format!("{} alone: give more policies to compare it.", first.name),
            _ => format!(
                "None of them is predicted to be faster than {}{}.",
                first.name,
                also(&alike)
            ),
        };
    };
    let gain = percent(1.0 - time.value);
    let Some(half) = time.half_width else {
        return format!("{} is predicted to take {gain} less time than {}; with one window nothing tells how sure that is.", fastest.name, first.name);
    };
    let (low, high) = (1.0 - time.value - half, 1.0 - time.value + half);
    let range = format!("95 % confidence: {} to {}", percent(low), percent(high));
    if !is_sure(time) {
        return format!("None of them is surely faster than {}: {} comes out with {gain} less time, but that may be chance ({range}).", first.name, fastest.name);
    }
    if 1.0 - time.value < NOTICEABLE {
        return format!(
            "All the same: {} takes {gain} less time than {} ({range}).",
            fastest.name, first.name
        );
    }
    format!(
        "{} is predicted to take {gain} less time than {} ({range}){}.",
        fastest.name,
        first.name,
        also(&alike)
    )
}

/// The interval does not hold 1.
pub fn is_sure(ratio: Ratio) -> bool {
    ratio
        .half_width
        .is_some_and(|half| (ratio.value - 1.0).abs() > half)
}

/// Those that cannot be told from the best.
fn also(alike: &[&str]) -> String {
    match alike {
        [] => String::new(),
        [one] => format!("; {one} is as good, as far as this can tell"),
        [others @ .., last] => format!(
            "; {} and {last} are as good, as far as this can tell",
            others.join(", ")
        ),
    }
}
