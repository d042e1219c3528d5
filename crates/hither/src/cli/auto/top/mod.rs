//! `hither auto --live`: what is going on, on the terminal, while the program runs.
//!
//! The view takes the terminal's other screen and reads no keys: Ctrl-C and Ctrl-Z mean to
//! the program what they always do. What the program writes to the terminal in that time goes
//! through a terminal of its own (`output`), and is shown when the view is left.
mod draw;
mod output;
mod screen;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use crate::auto::event_log::{IntervalEvent, LiveView};
use crate::cli::style::TerminalStyle;
use output::ProgramOutput;
use screen::TopScreen;

/// Between two pictures.
const REFRESH: Duration = Duration::from_millis(250);
/// Intervals of 100 ms of which the fault rates are kept.
const KEPT: usize = 600;

/// What the pictures show.
#[derive(Default)]
pub struct TopState {
    pub command: String,
    pub mechanism: &'static str,
    pub line: IntervalEvent,
    /// Faults that the program has anyway, and those that were caused, by interval.
    pub faults: VecDeque<(u64, u64)>,
    /// Faults on known pages, and those of them that were remote.
    pub remote: VecDeque<(u64, u64)>,
    pub lost: u64,
    /// The last lines that the program wrote, where they go through us.
    pub written: Option<Vec<String>>,
}

impl TopState {
    /// Takes in an interval.
    pub fn add(&mut self, line: &IntervalEvent) {
        let natural = line.faults.saturating_sub(line.extra);
        for (kept, new) in [
            (&mut self.faults, (natural, line.extra)),
            (&mut self.remote, (line.known, line.remote)),
        ] {
            kept.push_back(new);
            if kept.len() > KEPT {
                kept.pop_front();
            }
        }
        self.lost += line.lost;
        self.line = line.clone();
    }
}

/// The view.
pub struct TopView {
    state: TopState,
    style: TerminalStyle,
    drawn: Option<Instant>,
    screen: Option<TopScreen>,
    output: Option<ProgramOutput>,
}

impl TopView {
    /// The view, and what the program is to have as standard output and error.
    ///
    /// # Errors
    /// When there is no terminal that can be drawn on.
    pub fn new(
        command: String,
        mechanism: &'static str,
    ) -> Result<(TopView, [Option<OwnedFd>; 2])> {
        if !std::io::stderr().is_terminal() {
            bail!("--live draws on the terminal, and standard error is none; leave it out, or see --json-lines");
        }
        if std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb") {
            bail!("--live cannot draw on this terminal (TERM is dumb or empty); leave it out, or see --json-lines");
        }
        let (output, streams) =
            ProgramOutput::new().context("cannot make a terminal for the program")?;
        let top = TopView {
            state: TopState {
                command,
                mechanism,
                ..TopState::default()
            },
            style: TerminalStyle::of_stderr(),
            drawn: None,
            screen: None,
            output,
        };
        Ok((top, streams))
    }

    /// Draws if it is time. A terminal that is gone is not drawn on.
    fn draw(&mut self) {
        if self.drawn.is_some_and(|at| at.elapsed() < REFRESH) {
            return;
        }
        self.drawn = Some(Instant::now());
        if self.screen.is_none() {
            self.screen = TopScreen::enter().ok();
        }
        let written = self.output.as_mut().map(ProgramOutput::last_lines);
        self.state.written = written;
        let (state, style) = (&self.state, self.style);
        if let Some(screen) = &mut self.screen {
            screen.draw(|frame| draw::draw(frame, state, style));
        }
    }
}

impl LiveView for TopView {
    fn show_interval(&mut self, line: &IntervalEvent) {
        self.state.add(line);
        self.draw();
    }

    fn suspend(&mut self, stopping: bool) {
        if stopping {
            self.screen = None;
        }
        self.drawn = None;
    }
}

impl Drop for TopView {
    fn drop(&mut self) {
        self.screen = None;
        if let Some(output) = self.output.take() {
            output.show();
        }
    }
}
