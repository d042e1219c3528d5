//! What is told of an interval to who looks on and to the journal.
use super::super::Machine;
use super::{own_time, State, EVENT};
use crate::auto::event_log::{Line, ThreadNow};

impl State {
    /// What is so now, after what was done.
    pub(super) fn tell(&mut self, machine: &Machine, line: &mut Line) {
        let tally = self.record.tally();
        line.known = tally.known - self.tally.known;
        line.remote = tally.remote - self.tally.remote;
        self.tally = tally;
        line.all_threads_moved = self.counts.threads_moved;
        line.all_pages_moved = self.pages.moved;
        let threads = self.roster.live().map(|(tid, thread)| ThreadNow {
            pid: thread.pid,
            tid,
            name: self.record.name(tid).to_owned(),
            cpu: thread.ran,
            node: thread.ran.map(|cpu| machine.number_of(cpu)),
            seat: thread.seat,
            chose_itself: thread.chose,
        });
        line.threads = threads.collect();
        line.threads.sort_by_key(|thread| (thread.pid, thread.tid));
        self.cost.target = self.clocks.read();
        self.cost.cpu = own_time().saturating_sub(self.own_before);
        line.cost = self.cost.clone();
    }

    pub(super) fn describe(&self, line: &mut Line) {
        let tid = |member| self.roster.by_member(member).map(|(tid, _)| tid);
        let pairs = self.matrix.pairs().filter_map(|(i, j, weight)| {
            Some((tid(i)?, tid(j)?, f64::from(weight) / f64::from(EVENT)))
        });
        line.pairs = pairs.collect();
    }
}
