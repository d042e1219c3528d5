//! A race of placements in a short study: those that surely lose are given up after half of the windows.
//!
//! Placements are compared by the same windows, and what is wanted is the fastest. After every other window, one that takes surely
//! more than 1 % longer than the fastest so far (95 % confidence, as windows go in pairs) will not be it: the other windows are
//! played for those left only. The first placement always stays, since all are compared with it.
use hither_model::simulate::replay_input::ratio_estimator::{ratio_estimate, SeedWindowSamples};

/// Windows at least for a race: half of fewer tell too little of how windows differ.
pub const LEAST_WINDOWS: usize = 12;

/// The time of what is given up by that of the fastest, surely more than this.
const SLOWER: f64 = 1.01;

/// Windows by position that are played one part after the other: all in one, or every other one first, so that both parts
/// are from all over the run.
pub fn parts(windows: usize, is_race: bool) -> Vec<Vec<usize>> {
    match is_race {
        true => vec![
            (0..windows).step_by(2).collect(),
            (1..windows).step_by(2).collect(),
        ],
        false => vec![(0..windows).collect()],
    }
}

/// Which placements may still be the fastest, given the times of each by seed and window; the first, with which they are compared,
/// is none of them and stays.
pub fn may_win<T: AsRef<SeedWindowSamples>>(times: &[T]) -> Vec<bool> {
    let mean =
        |times: &SeedWindowSamples| times.iter().flatten().sum::<f64>() / times.len().max(1) as f64;
    let compared = times.iter().skip(1).map(AsRef::as_ref);
    let fastest = compared.min_by(|a, b| mean(a).total_cmp(&mean(b)));
    let loses = |times: &SeedWindowSamples| {
        let ratio = fastest.and_then(|fastest| ratio_estimate(fastest, times));
        let sure = |half: f64, value: f64| value - half > SLOWER;
        ratio.is_some_and(|ratio| ratio.half_width.is_some_and(|half| sure(half, ratio.value)))
    };
    let all = times.iter().enumerate();
    all.map(|(at, times)| at == 0 || !loses(times.as_ref()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_from_all_over_the_run() {
        assert_eq!(parts(5, true), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(parts(3, false), [vec![0, 1, 2]]);
    }

    #[test]
    fn only_what_surely_loses_is_given_up() {
        let check = |times: &[&[&[f64]]], expected: &[bool]| {
            let all = times.iter().map(|seeds| -> Vec<Vec<f64>> {
                seeds.iter().map(|windows| windows.to_vec()).collect()
            });
            assert_eq!(may_win(&all.collect::<Vec<_>>()), expected, "{times:?}");
        };
        let fast: &[&[f64]] = &[&[10.0, 20.0, 12.0, 18.0]];
        let slow: &[&[f64]] = &[&[12.0, 24.0, 14.5, 21.5]];
        // The system stays however slow it is, and whatever its seeds say.
        let system: &[&[f64]] = &[&[30.0, 60.0, 36.0, 54.0], &[31.0, 60.0, 37.0, 54.0]];
        check(&[system, fast, slow], &[true, true, false]);
        check(&[system, slow, fast], &[true, false, true]);
        // However fast it is: something else is looked for.
        check(
            &[&[&[1.0, 2.0, 1.2, 1.8]], slow, fast],
            &[true, false, true],
        );
        // As slow on the whole, but not in all windows.
        let uneven: &[&[f64]] = &[&[8.0, 30.0, 8.0, 26.0]];
        check(&[system, fast, uneven], &[true, true, true]);
        // Surely slower, but by less than what counts.
        let alike: &[&[f64]] = &[&[10.05, 20.1, 12.06, 18.09]];
        check(&[system, fast, alike], &[true, true, true]);
        // Nothing is sure by one window.
        check(&[&[&[3.0]], &[&[1.0]], &[&[2.0]]], &[true, true, true]);
        check(&[system], &[true]);
        check(&[], &[]);
    }
}
