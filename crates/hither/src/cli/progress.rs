//! The line on the terminal while a program is traced.
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::units::{plural, show_bytes, show_count, show_duration};
use crate::app::study::progress::{self as app, Steps};
use crate::trace::collector::LiveStatus;

/// Draws nothing unless stderr is a terminal that can clear a line and we are in its
/// foreground: a job in the background must not paint over the shell.
pub struct ProgressLine {
    bar: Option<ProgressBar>,
    last: (Duration, u64),
}

impl ProgressLine {
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        ProgressLine {
            bar: bar(quiet),
            last: (Duration::ZERO, 0),
        }
    }

    /// Draws how far the run is.
    pub fn show(&mut self, live: impl FnOnce() -> LiveStatus) {
        let Some(bar) = &self.bar else { return };
        if !in_foreground() {
            return;
        }
        let live = live();
        bar.set_message(line(&live, self.last));
        self.last = (live.elapsed, live.accesses);
    }

    /// Clears the line.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A line to draw on; `None` where there is nothing to draw on.
fn bar(quiet: bool) -> Option<ProgressBar> {
    let plain = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let visible = !quiet && !plain && std::io::stderr().is_terminal();
    visible.then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        // A template without placeholders for colours, so there is nothing to
        // switch off for NO_COLOR.
        match ProgressStyle::with_template("{wide_msg}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    })
}

/// Draws how far simulations are.
pub struct Counters {
    pub quiet: bool,
}

impl app::Progress for Counters {
    fn begin(&self, steps: u64, what: &'static str) -> Box<dyn Steps> {
        Box::new(StepCounter::new(self.quiet, steps, what))
    }
}

/// How many of a known number of steps are done; several threads may do them.
struct StepCounter {
    bar: Option<ProgressBar>,
    steps: u64,
    what: &'static str,
    done: AtomicU64,
}

impl StepCounter {
    /// `steps`: how many there will be, 0 if unknown.
    fn new(quiet: bool, steps: u64, what: &'static str) -> Self {
        StepCounter {
            bar: bar(quiet),
            steps,
            what,
            done: AtomicU64::new(0),
        }
    }
}

impl Steps for StepCounter {
    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(bar) = &self.bar else { return };
        if in_foreground() {
            let of = match self.steps {
                0 => String::new(),
                steps => format!(" of {steps}"),
            };
            bar.set_message(format!("hither: {done}{of} {}", self.what));
        }
    }
}

impl Drop for StepCounter {
    /// Clears the line.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn in_foreground() -> bool {
    nix::unistd::tcgetpgrp(std::io::stderr()).is_ok_and(|group| group == nix::unistd::getpgrp())
}

/// `last`: when the line was drawn before, and the accesses until then.
fn line(live: &LiveStatus, last: (Duration, u64)) -> String {
    let span = live.elapsed.saturating_sub(last.0).as_secs_f64();
    let accesses = live.accesses.saturating_sub(last.1);
    let rate = if span > 0.0 {
        accesses as f64 / span
    } else {
        0.0
    };
    format!(
        "hither: {}, {}, {} ({} alive), {} accesses/s, {} touched",
        show_duration(live.elapsed),
        plural(live.slices, "slice", "slices"),
        plural(live.threads_total, "thread", "threads"),
        live.threads_alive,
        show_count(rate as u64),
        show_bytes(live.footprint_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_since_the_last_line() {
        let live = LiveStatus {
            elapsed: Duration::from_millis(2500),
            slices: 250,
            threads_alive: 3,
            threads_total: 8,
            accesses: 3_000_000,
            footprint_bytes: 5 << 20,
        };
        assert_eq!(
            line(&live, (Duration::from_millis(2000), 2_000_000)),
            "hither: 2.5 s, 250 slices, 8 threads (3 alive), 2.0 M accesses/s, 5.0 MiB touched"
        );
        assert!(line(&live, (live.elapsed, 0)).contains(" 0 accesses/s"));
    }
}
