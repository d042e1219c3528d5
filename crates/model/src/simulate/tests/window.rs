//! The instruction window against its definition.
use crate::rng::Rng;
use crate::simulate::instruction_window::{CoreShare, InstructionWindow};

/// All accesses of a thread: instruction, when its data were there, when it left.
#[derive(Default)]
struct DefinedWindow {
    past: Vec<(u64, f64, f64)>,
    /// Accesses that left before one that entered.
    gone: usize,
    instructions: u64,
    entered: f64,
    left: f64,
}

impl DefinedWindow {
    fn enter(&mut self, after: u32, depends: u32, share: &CoreShare) -> f64 {
        self.instructions += u64::from(after);
        let mut at = self.entered + f64::from(after) * share.step;
        let first = self.instructions.saturating_sub(share.window);
        // No more than 511 accesses are in it.
        self.gone = self.gone.max(self.past.len().saturating_sub(511));
        while self.past.get(self.gone).is_some_and(|a| a.0 <= first) {
            self.gone += 1;
        }
        if let Some(last) = self.gone.checked_sub(1).map(|n| self.past[n]) {
            at = at.max(last.2 + first.saturating_sub(last.0) as f64 * share.step);
        }
        self.entered = at;
        match self.past.len().checked_sub(depends as usize) {
            Some(n) if depends > 0 && depends < 512 => at.max(self.past[n].1),
            _ => at,
        }
    }

    fn retire(&mut self, after: u32, step: f64, issued: f64, done: f64, write: bool) {
        let ready = if write { issued } else { done };
        self.left = (self.left + f64::from(after) * step).max(ready);
        self.past.push((self.instructions, ready, self.left));
    }
}

/// Short and long latencies in turns, many accesses of one instruction, long stretches without an access, siblings that come and
/// go while an access waits.
#[test]
fn accesses_enter_when_the_window_has_room() {
    let chance = &mut Rng::new(3);
    for round in 0..60 {
        let share = |threads: u32| CoreShare::of_core([1.0, 3.0, 4.0][round % 3], 128, threads);
        let mut now = share(1);
        let (mut window, mut defined) = (InstructionWindow::new(), DefinedWindow::default());
        for n in 0..4000 {
            let busy = n / 700 % 2 == 1;
            if chance.happens(if busy { 0.02 } else { 0.001 }) {
                now = share(1 + chance.below(3) as u32);
            }
            let after = match chance.below(if round < 30 { 200 } else { 10 }) {
                0 => 300 * chance.below(2) as u32,
                few => (few % 4) as u32,
            };
            let after = if n / 900 % 3 == 2 { 0 } else { after };
            let depends = [0, 0, 1, 3, 200, 600][chance.below(6)];
            let at = window.enter(after, depends, &now);
            assert_eq!(at, defined.enter(after, depends, &now), "{round} {n}");
            if chance.happens(0.01) {
                window.restart(at + 7.3);
                defined.entered = defined.entered.max(at + 7.3);
                defined.left = defined.left.max(at + 7.3);
            }
            let latency = if chance.happens(if busy { 0.1 } else { 0.005 }) {
                280.7
            } else {
                4.0
            };
            let step = if chance.happens(0.003) { 2.0 } else { now.step };
            let write = chance.happens(0.3);
            window.retire(after, step, at, at + latency, write);
            defined.retire(after, step, at, at + latency, write);
            assert_eq!(window.last_retired(), defined.left);
        }
    }
}
