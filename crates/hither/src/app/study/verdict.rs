//! Which placement is best, by how much, and how sure that is, in a sentence.
use hither_profile::{PredictedPlacement, RatioEstimate};

use hither_model::units::percent;

/// Less than this is no difference worth a word.
const NOTICEABLE: f64 = 0.005;

/// The fastest, the first of equals.
pub fn fastest(all: &[PredictedPlacement]) -> usize {
    let time = |at: &usize| all[*at].amounts.time;
    (0..all.len())
        .min_by(|a, b| time(a).total_cmp(&time(b)))
        .unwrap_or(0)
}

/// `time`: that of one placement as a ratio to another's.
pub fn sentence(
    all: &[PredictedPlacement],
    time: &dyn Fn(usize, usize) -> Option<RatioEstimate>,
) -> String {
    let at = fastest(all);
    let (Some(first), Some(fastest)) = (all.first(), all.get(at)) else {
        return "There is nothing to compare.".to_owned();
    };
    // Where nothing is left to chance, as with one window, what was recorded is all there is.
    let told_apart = |other: usize| {
        let ratio = time(other, at).filter(|r| r.half_width.is_none() || is_sure(*r));
        ratio.is_some_and(|r| r.value - 1.0 >= NOTICEABLE)
    };
    // The first is what the best is compared with in any case.
    let behind = (1..all.len()).filter(|other| *other != at && !told_apart(*other));
    let alike: Vec<&str> = behind.map(|other| all[other].name.as_str()).collect();
    let Some(time) = fastest.relative.time.filter(|_| at > 0) else {
        return match all.len() {
            1 => format!("{} alone: give more policies to compare it.", first.name),
            _ => format!(
                "None of them is predicted to be faster than {}{}.",
                first.name,
                tied_with(&alike)
            ),
        };
    };
    let less = percent(1.0 - time.value);
    if !is_sure(time) {
        return uncertain_sentence(all, fastest, time);
    }
    if 1.0 - time.value < NOTICEABLE {
        return format!(
            "All the same: {} takes {less} less time than {} ({}).",
            fastest.name,
            first.name,
            range(time)
        );
    }
    format!("{}{}.", gains(fastest, time, first), tied_with(&alike))
}

/// The fastest is not surely faster than the first; another one may be.
fn uncertain_sentence(
    all: &[PredictedPlacement],
    fastest: &PredictedPlacement,
    time: RatioEstimate,
) -> String {
    let first = &all[0];
    let doubt = match time.half_width {
        Some(_) => format!("but that may be chance ({})", range(time)),
        None => "but one window does not tell how sure that is".to_owned(),
    };
    let less = percent(1.0 - time.value);
    let is_gain = |ratio: &RatioEstimate| is_sure(*ratio) && 1.0 - ratio.value >= NOTICEABLE;
    let sure = all
        .iter()
        .filter_map(|p| Some((p, p.relative.time.filter(is_gain)?)));
    match sure.min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value)) {
        Some((other, ratio)) => format!(
            "{}; {} comes out with {less} less, {doubt}.",
            gains(other, ratio, first),
            fastest.name
        ),
        None if time.half_width.is_none() => format!("{} is predicted to take {less} less time than {}; with one window nothing tells how sure that is.", fastest.name, first.name),
        None => format!("None of them is surely faster than {}: {} comes out with {less} less time, {doubt}.", first.name, fastest.name),
    }
}

fn gains(one: &PredictedPlacement, time: RatioEstimate, first: &PredictedPlacement) -> String {
    format!(
        "{} is predicted to take {} less time than {} ({})",
        one.name,
        percent(1.0 - time.value),
        first.name,
        range(time)
    )
}

/// What is gained at least and at most; nothing takes less than no time.
fn range(time: RatioEstimate) -> String {
    let half = time.half_width.unwrap_or(0.0);
    let (low, high) = (1.0 - time.value - half, (1.0 - time.value + half).min(1.0));
    format!("95 % confidence: {} to {}", percent(low), percent(high))
}

/// The interval does not hold 1.
pub fn is_sure(ratio: RatioEstimate) -> bool {
    ratio
        .half_width
        .is_some_and(|half| (ratio.value - 1.0).abs() > half)
}

/// Those that cannot be told from the best.
fn tied_with(alike: &[&str]) -> String {
    match alike {
        [] => String::new(),
        [one] => format!("; {one} is as good, as far as this can tell"),
        [others @ .., last] => format!(
            "; {} and {last} are as good, as far as this can tell",
            others.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::{PredictedAmounts, RelativeFigures};

    /// Placements `a`, `b`, ... of so much time, and the half widths of that.
    fn check(times: &[(f64, Option<f64>)], parts: &[&str]) {
        let said = said(times, &|_, _| None);
        for part in parts {
            assert!(said.contains(part), "no {part:?} in {said:?}");
        }
        assert!(
            !said.contains("a is as good") && !said.contains("; a,"),
            "{said:?}"
        );
    }

    fn said(
        times: &[(f64, Option<f64>)],
        between: &dyn Fn(usize, usize) -> Option<RatioEstimate>,
    ) -> String {
        let one = |(name, (value, half_width)): (char, &(f64, Option<f64>))| PredictedPlacement {
            name: name.to_string(),
            relative: RelativeFigures {
                time: Some(RatioEstimate {
                    value: *value,
                    half_width: *half_width,
                }),
                ..RelativeFigures::default()
            },
            amounts: PredictedAmounts {
                time: *value,
                ..PredictedAmounts::default()
            },
            ..PredictedPlacement::default()
        };
        let all: Vec<PredictedPlacement> = ('a'..).zip(times).map(one).collect();
        sentence(&all, between)
    }

    #[test]
    fn as_good_are_those_that_chance_may_have_put_behind() {
        let times = [1.0, 0.5, 0.52, 0.9, 0.501].map(|time| (time, Some(0.01)));
        let check = |half_width, alike: &str| {
            let said = said(&times, &|one, other| {
                let value = times[one].0 / times[other].0;
                Some(RatioEstimate { value, half_width })
            });
            assert!(
                said.ends_with(&format!("{alike} as good, as far as this can tell.")),
                "{said}"
            );
        };
        check(Some(0.1), "; c and e are");
        check(Some(0.02), "; e is");
        // One window and no seeds.
        check(None, "; e is");
    }

    #[test]
    fn the_best_that_is_sure_is_named_before_one_that_may_be_chance() {
        let first = (1.0, Some(0.0));
        check(
            &[first, (0.9, Some(0.02))],
            &[
                "b is predicted to take 10.0 % less time than a",
                "8.0 % to 12.0 %",
            ],
        );
        check(
            &[first, (0.9, Some(0.02)), (0.8, Some(0.3))],
            &[
                "b is predicted to take 10.0 % less time than a",
                "; c comes out with 20.0 % less",
                "may be chance",
            ],
        );
        check(
            &[first, (0.9, Some(0.02)), (0.8, None)],
            &[
                "b is predicted to take 10.0 % less time than a",
                "one window",
            ],
        );
        check(
            &[first, (0.999, Some(0.0)), (0.8, Some(0.3))],
            &[
                "None of them is surely faster than a: c",
                "-10.0 % to 50.0 %",
            ],
        );
        check(
            &[first, (0.8, None)],
            &["b is predicted", "with one window nothing tells"],
        );
        check(
            &[first, (1.1, Some(0.0))],
            &["None of them is predicted to be faster than a"],
        );
    }

    #[test]
    fn nothing_gains_more_than_all_of_the_time() {
        check(
            &[(1.0, Some(0.0)), (0.2, Some(0.5))],
            &["30.0 % to 100.0 %"],
        );
    }
}
