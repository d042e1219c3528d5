//! When threads and pages may move, and by what rule it is decided.
use hither_profile::Nanos;

/// How it is decided which phases get a placement of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhaseRule {
    /// All together, by what moving costs.
    #[default]
    Together,
    /// One after the other, by the conditions of OPT 6.2.2 and 6.3.
    Opt,
    /// Every so often, whatever the phases, by a matrix that ages (kMAF 3.4).
    Kmaf,
}

impl PhaseRule {
    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PhaseRule::Together => "together",
            PhaseRule::Opt => "opt",
            PhaseRule::Kmaf => "kmaf",
        }
    }
}

/// When threads and pages may move; the limits of the default are the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MigrationLimits {
    /// H_min: C_H (OPT eq. 2) that a phase must exceed.
    pub heterogeneity: f64,
    /// A_min: C_A (OPT eq. 3) per second that a phase must exceed.
    pub amount: f64,
    /// t_min of threads: least nanoseconds between their migrations.
    pub thread_interval: Nanos,
    /// t_min of pages.
    pub page_interval: Nanos,
    /// What moving a thread costs, as communication events with where it was: the lines of its caches
    /// that it leaves behind. Only [`PhaseRule::Together`] asks for it.
    pub thread_move: u64,
    /// What moving a page costs, as accesses from another node; likewise.
    pub page_move: u64,
}

impl MigrationLimits {
    /// Those of OPT 6.2.2 and 6.3.
    pub const OPT: MigrationLimits = MigrationLimits {
        heterogeneity: 100.0,
        amount: 150.0,
        thread_interval: 1_000_000_000,
        page_interval: 10_000_000_000,
        thread_move: 4096,
        page_move: 512,
    };
    /// kMAF maps threads every 100 ms, whatever they communicate (kMAF 3.4).
    pub const KMAF: MigrationLimits = MigrationLimits {
        heterogeneity: 0.0,
        amount: 0.0,
        thread_interval: 100_000_000,
        page_interval: 0,
        ..MigrationLimits::OPT
    };
}

impl Default for MigrationLimits {
    fn default() -> Self {
        MigrationLimits::OPT
    }
}
