//! Where what is played of windows begins: what comes before is decoded once for all plans that are played.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use hither_profile::bursts::{BurstAccess, PieceDecoder};
use hither_profile::{Nanos, ThreadIx};

use super::run_recording::{RunRecording, SimWindow};

/// A thread's accesses from a place within a window on.
#[derive(Clone)]
pub struct ThreadStart<'a> {
    pub decoder: PieceDecoder<'a>,
    /// Accesses before it, and when the thread last went on after a wait.
    pub accesses: u64,
    pub waited: Option<Nanos>,
}

impl<'a> ThreadStart<'a> {
    fn of_window(recording: &'a RunRecording, window: usize, thread: ThreadIx) -> Self {
        ThreadStart {
            decoder: recording.bursts.decoder(window, thread),
            accesses: 0,
            waited: None,
        }
    }

    /// Goes on by whole pieces, as long as no more than `most` accesses are before it.
    fn advance(&mut self, most: u64, into: &mut Vec<BurstAccess>) {
        while let Some(next) = self.decoder.peek() {
            if self.accesses == most || self.accesses + next.accesses > most {
                break;
            }
            let Some(piece) = self.decoder.next(into) else {
                break;
            };
            self.accesses += piece.accesses;
            if piece.waited {
                self.waited = Some(piece.start);
            }
        }
    }
}

/// The starts of windows of a study, each kept until all plans have had it.
pub struct SharedStarts<'a> {
    recording: &'a RunRecording,
    /// By number of the window.
    windows: BTreeMap<usize, WindowStarts<'a>>,
}

struct WindowStarts<'a> {
    /// By thread of the profile: how many plans there are that did not have it, and what they get.
    threads: Vec<Mutex<(usize, Option<ThreadStart<'a>>)>>,
    /// Plans that have come.
    came: AtomicUsize,
}

impl<'a> SharedStarts<'a> {
    pub fn new<'w>(
        recording: &'a RunRecording,
        windows: impl Iterator<Item = &'w SimWindow>,
        plans: usize,
    ) -> Self {
        let all = windows.flat_map(|w| w.before.iter().chain([w]));
        let starts = |window: &SimWindow| {
            let threads = window.accesses.iter();
            let threads = threads.map(|_| Mutex::new((plans, None))).collect();
            let came = AtomicUsize::new(0);
            (window.number, WindowStarts { threads, came })
        };
        SharedStarts {
            recording,
            windows: all.map(starts).collect(),
        }
    }

    /// The starts of a window's threads for one plan, each with at most so many accesses before it as `most` has for it.
    pub fn take(&self, window: &SimWindow, most: &[u64]) -> Vec<(ThreadIx, ThreadStart<'a>)> {
        let mut threads = self.recording.bursts.threads(window.number);
        let Some(starts) = self.windows.get(&window.number) else {
            return Vec::new();
        };
        // Of two plans that come at the same time one begins at the end, so that neither waits for the other.
        if starts.came.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            threads.reverse();
        }
        let mut into = Vec::new();
        let found = threads.into_iter().filter_map(|thread| {
            let mut shared = starts.threads.get(thread.at())?.lock().ok()?;
            let start = shared.1.take().unwrap_or_else(|| {
                let mut start = ThreadStart::of_window(self.recording, window.number, thread);
                start.advance(most.get(thread.at()).copied().unwrap_or(0), &mut into);
                start
            });
            shared.0 = shared.0.saturating_sub(1);
            if shared.0 > 0 {
                shared.1 = Some(start.clone());
            }
            Some((thread, start))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(thread, _)| *thread);
        found
    }
}
