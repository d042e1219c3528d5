//! Options of a simulation study, from whatever command.
use std::path::PathBuf;

use crate::app::map::options::MapOptions;
use crate::app::policy_pair::PolicyPair;
use hither_model::simulate::replay_input::page_homes::PageHomeRule;

/// Placements to simulate, and how much of the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct SimOptions {
    /// The others are compared with the first; where there is none, the usual ones or, with
    /// placements, the system.
    pub policies: Vec<PolicyPair>,
    /// Files that `hither map` wrote.
    pub placements: Vec<PathBuf>,
    /// Where pages are that a placement does not place.
    pub pages: PageHomeRule,
    /// How many seeds policies of chance are played with.
    pub seeds: u32,
    /// The first seed, and that of the other policies.
    pub seed: u64,
    /// How often the system moves a thread, per second of the program's own time.
    pub migrations: f64,
    /// About how many accesses to simulate of each placement and seed; `None` for all.
    pub accesses: Option<u64>,
    /// How short a study is that plays pieces of windows and does not look for the best warm-up; `None` for a
    /// full one.
    pub short: Option<ShortStudy>,
    /// Share of each window that warms the caches; `None` for what is found to do.
    pub warm_up: Option<f64>,
    /// Simulations at a time; `None` for one on each processor.
    pub jobs: Option<u32>,
    /// Tell data structures apart.
    pub by_structure: bool,
    /// How policies place; each sets its own `policy`, `data` and `seed`.
    pub map: MapOptions,
}

/// Most accesses that a short study simulates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortStudy {
    /// Of each placement and seed.
    pub accesses: u64,
    /// Of each window, about: of those with more a piece is played.
    pub piece: u64,
    /// By what share of its time the system's placement may be off where it is played with one seed.
    pub seed_error: f64,
}

/// Accesses where nothing is said.
pub const ACCESSES: u64 = 96_000_000;
/// Seeds where nothing is said.
pub const SEEDS: u32 = 5;
/// Moves of a thread per second where nothing is said.
pub const MIGRATIONS: f64 = 1.0;

impl Default for SimOptions {
    fn default() -> Self {
        SimOptions {
            policies: Vec::new(),
            placements: Vec::new(),
            pages: PageHomeRule::FirstTouch,
            seeds: SEEDS,
            seed: 0,
            migrations: MIGRATIONS,
            accesses: Some(ACCESSES),
            short: None,
            warm_up: None,
            jobs: None,
            by_structure: false,
            map: MapOptions::default(),
        }
    }
}
