//! Records can get lost, and the ends of threads among them: whoever comes with the id of one
//! that is gone is not to be taken for it.
use hither_profile::Nanos;

use super::{Engine, State};
use crate::auto::profile_builder::monotonic;
use hither_sys::Pid;

impl Engine {
    /// Looks for threads that ended without our being told, where that may be.
    pub(super) fn miss(&mut self) {
        let lost = self.observer.lost();
        if std::mem::replace(&mut self.state.missed, lost) == lost {
            return;
        }
        for (pid, tid) in self.state.roster.missing() {
            self.state.gone(monotonic(), pid, tid);
        }
    }
}

impl State {
    /// A process begins: whoever had its id before has ended.
    pub(super) fn forget(&mut self, at: Nanos, pid: Pid) {
        if self.roster.size(pid) > 0 {
            for tid in self.roster.of(pid) {
                self.gone(at, pid, tid);
            }
        }
    }
}
