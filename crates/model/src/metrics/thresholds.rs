//! From where on a figure decides: the papers' thresholds; where they needed completing, the comment
//! says how.

/// Least C_H worth a thread mapping (OPT 6.2.2), with up to [`H_MIN_THREADS`] threads.
pub const H_MIN: f64 = 100.0;
/// The papers chose H_min on runs of 64 threads. C_H of a fixed pattern falls as 1/T (pairs
/// give 10^4 (T-1)/T^2), so above 64 threads the threshold falls with it.
pub const H_MIN_THREADS: usize = 64;
/// Least C_A per second worth a thread mapping (OPT 6.2.2).
pub const A_MIN: f64 = 150.0;
/// E_app from which pages have a node they belong to. kMAF eq. 6 moves a page whose first
/// node has twice the accesses of the second: with two nodes sharing it, E_page = 2/3.
pub const E_HIGH: f64 = 2.0 / 3.0;
/// Pages are used alike by the nodes up to this part of the way from E_page = 1/N, where they
/// are perfectly so, to 1. Ours: on two nodes the busier one makes 62 % of the accesses.
pub const ALIKE: f64 = 0.25;
/// How far E_app must lie beyond what the nodes' work makes it, of all that there is beyond that, for pages to
/// belong to nodes (`belonging.rs`). Where two nodes work alike it is [`E_HIGH`]: (2/3 - 1/2) / (1 - 1/2).
pub const LEAST_ABOVE_WORK: f64 = 1.0 / 3.0;
/// Acc_app from which first touch is right. Ours: the papers report the gap (OPT figure 8)
/// but name no threshold.
pub const ACC_RIGHT: f64 = 0.9;
/// Least share of accesses that placing pages must make local. Ours: half of what
/// [`ACC_RIGHT`] lets pass, since a page on a wrong node still has accesses from there.
pub const MIN_LOCAL_GAIN: f64 = 0.05;
/// E_app(best) - E_app(worst) from which the assignment of threads decides where pages are
/// local. Ours: the papers' mean difference is 6 points (OPT figure 7), this is above it.
pub const E_SPREAD: f64 = 0.1;

/// Instructions in whose time a line comes from another socket rather than from a near cache or memory. Ours: 100 ns,
/// as on the machines of `testdata/machines`, at 3 GHz and an instruction a cycle.
pub const FAR_FETCH: f64 = 300.0;
/// Share of the fetches that are of pages which several threads use, or for coherence events, from which it may matter
/// that all threads are close to one another. Ours: less could save no more than a tenth of the memory's part of the time.
pub const SHARED_MIN: f64 = 0.1;

/// Least part of the threads' time that near lines must be able to save. Ours: less is lost in the noise of any
/// measurement.
pub const TIME_MIN: f64 = 0.01;
/// Coherence events among the fetches from which they are what threads wait for, however much they spin meanwhile. Ours.
pub const COHERENCE_MIN: f64 = 0.1;

/// Share of the events that phases worth a mapping must have. Ours: as of patterns that are called
/// unstable, less is not worth moving threads for.
pub const PHASE_EVENTS: f64 = 0.1;

/// Sharing events per thread from which a sample of them shows which threads share: the noise of a
/// pattern of pairs is below a third then. Ours.
pub const EVENTS_MIN: u64 = 10;

/// H_min for a number of threads.
#[must_use]
pub fn h_min(threads: usize) -> f64 {
    H_MIN * (H_MIN_THREADS as f64 / threads.max(1) as f64).min(1.0)
}
