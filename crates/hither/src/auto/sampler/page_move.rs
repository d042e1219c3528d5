//! Pages of private memory are taken away by a thread of ours inside the program (the
//! agent, `tracer/agent`) and put back when they are touched (UFFDIO_MOVE, Linux 6.8): the
//! fault tells who touched what, reads as well as writes.
//!
//! ```text
//!  this file --pipe: open, take, close--> agent --UFFDIO_MOVE--> stash
//!      ^------- pipe: counts, closed -------'  ^--- fault --- the program's threads
//! ```
//! The agent decides nothing: which memory is fit for it is decided here, from the
//! kernel's own account of it, and the agent lets go of what the program changes. Where we
//! are not sure, the process is left alone: a page that is lost cannot be mended.
mod host;

use std::io;

use hither_profile::Nanos;

use super::agent::agent_hosts::Entered;
use super::agent::connection;
use super::{Kind, Sampler, View};
use hither_sys::{Pid, Tid};
use host::Moved;

/// What a fault costs the program besides the agent's own time: it is stopped, waits, and
/// is woken.
const FAULT: Nanos = 3000;
/// What taking a page and putting it back costs the agent, until it was measured.
const FIRST: Nanos = 4000;

#[derive(Debug)]
pub struct Mover {
    processes: Entered<Moved>,
    price: Nanos,
}

impl Mover {
    pub fn new() -> Result<Mover, String> {
        connection::is_possible()?;
        Ok(Mover {
            processes: Entered::new(()),
            price: FIRST + FAULT,
        })
    }
}

impl Sampler for Mover {
    fn name(&self) -> &'static str {
        "move"
    }

    fn price(&self) -> Nanos {
        self.price
    }

    fn reaches(&self) -> &'static [Kind] {
        &[Kind::Private]
    }

    fn may_take(&self, at: (Pid, u64), _: &View) -> bool {
        self.processes.may_take(at)
    }

    fn taken(&self) -> u64 {
        self.processes.taken().0
    }

    fn take(&mut self, wanted: u32, view: &View) -> io::Result<()> {
        self.processes.look(view, wanted > 0);
        let (taken, time) = self.processes.taken();
        if taken > 100 {
            self.price = time / taken + FAULT;
        }
        self.processes.take(wanted, view.picks);
        Ok(())
    }

    fn owns(&self, tid: Tid) -> bool {
        self.processes.owns(tid)
    }

    fn take_entered(&mut self) -> Vec<(Pid, Tid)> {
        self.processes.take_entered()
    }

    fn note(&self) -> Option<String> {
        self.processes.note()
    }
}
