//! Options of a placed run.
use std::ffi::OsString;
use std::path::PathBuf;

use super::policy;
use crate::run::outcome::FollowMethod;
use hither_model::topology::PuList;

/// What to run, and where its threads and pages are wanted.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub placement: Option<PathBuf>,
    /// Leave the pages of the placement to the system.
    pub threads_only: bool,
    /// Leave the threads of the placement to the system.
    pub data_only: bool,
    /// Bind pages to their nodes: fail an allocation rather than use another node's memory.
    pub strict: bool,
    /// Change phases by time, without counting barriers.
    pub phases_by_time: bool,
    /// Policies for what the placement leaves out.
    pub choice: policy::RunPolicies,
    /// Only these PUs; without a policy for threads, in this order.
    pub pus: Option<PuList>,
    /// Threads to leave alone, in order of creation.
    pub skip: Option<PuList>,
    /// `None` for what works here.
    pub method: Option<FollowMethod>,
    pub command: Vec<OsString>,
}
