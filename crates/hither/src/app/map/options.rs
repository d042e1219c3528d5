//! Options of a mapping, from whatever command.
use std::collections::BTreeMap;
use std::path::PathBuf;

use hither_model::map::data::page_groups::GroupDecision;
use hither_model::map::data::{
    self, DataPolicy, LocalityBalancePolicy, PlacementPageSize, RandomDataPolicy,
};
use hither_model::map::phase_plan::{MigrationLimits, PhaseRule};
use hither_model::map::threads;
use hither_model::metrics::phase_detection::{
    communication_phases, partner_window, window_of_half_a_second,
};
use hither_model::metrics::stable_phases::{stable_phases, RunPhase};
use hither_model::topology::{CpuKindSelection, MachineRestrictions, PuList};
use hither_profile::Profile;

/// How to place threads and pages, and on what; what is placed is a [`super::input::Source`].
#[derive(Clone, Debug, PartialEq)]
pub struct MapOptions {
    /// Machine: a name, a file or hwloc's short notation; `None` for this one.
    pub topology: Option<String>,
    /// Only these PUs of it.
    pub pus: Option<PuList>,
    pub cpu_kinds: CpuKindSelection,
    /// Most threads per PU; `None` for as few as hold all threads.
    pub capacity: Option<u32>,
    /// Let threads share a core while another core is idle.
    pub siblings: bool,
    pub cost: CostKind,
    /// Place only these; `None` for those that work.
    pub threads: Option<PuList>,
    /// A name of [`threads::THREAD_POLICIES`].
    pub policy: &'static str,
    /// As [`data::data_policy_by_name`] takes it; `None` for what suits the machine.
    pub data: Option<String>,
    /// Of the data policy `locality-balance`: 0 (balance) to 1 (locality).
    pub mix: Option<f64>,
    /// Pages of these structures, or `region:N`, are decided all alike.
    pub structures: Vec<(String, GroupDecision)>,
    pub page_size: PlacementPageSize,
    pub seed: u64,
    /// A placement for each phase of communication that is worth one.
    pub phases: Option<PhaseOptions>,
    /// The placement to start from.
    pub from: Option<PathBuf>,
    /// Say of the largest structures where they are and what suits them.
    pub explain: bool,
}

/// Which phases get a placement of their own (OPT 6.2, 6.3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseOptions {
    /// Slices whose mean tells phases apart; `None` for as many as the rule says.
    pub window: Option<usize>,
    /// Least difference between phases: of partners or, by OPT's rule, of heterogeneity.
    pub difference: f64,
    pub rule: PhaseRule,
    pub limits: MigrationLimits,
}

impl PhaseOptions {
    /// Slices whose mean tells phases of a profile apart.
    pub fn window_of(&self, profile: &Profile) -> usize {
        self.window.unwrap_or_else(|| match self.rule {
            PhaseRule::Together => partner_window(profile),
            PhaseRule::Opt | PhaseRule::Kmaf => window_of_half_a_second(&profile.slices),
        })
    }

    /// The phases that may get a placement of their own, and what lies between them. The paper's rule takes
    /// those by heterogeneity as they are.
    pub fn phases_of(&self, profile: &Profile) -> Vec<RunPhase> {
        let window = self.window_of(profile);
        let literal = |slices| RunPhase {
            slices,
            stable: true,
        };
        match self.rule {
            PhaseRule::Together => stable_phases(profile, window, self.difference),
            PhaseRule::Opt | PhaseRule::Kmaf => {
                let all = communication_phases(&profile.slices, window, self.difference);
                all.into_iter().map(literal).collect()
            }
        }
    }
}

/// What the distance of two PUs is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostKind {
    /// Steps through the tree, up and down.
    #[default]
    Hops,
    /// Cycles to the closest cache or memory shared.
    Levels,
    /// Latency between nodes, where the topology has it.
    Latency,
}

impl CostKind {
    pub fn name(self) -> &'static str {
        match self {
            CostKind::Hops => "hops",
            CostKind::Levels => "levels",
            CostKind::Latency => "latency",
        }
    }
}

/// A data policy and what it was called.
type NamedPolicy = (String, Box<dyn DataPolicy>);

/// Places threads that nothing else places: where a placement is compared with none, and where a program
/// must make do with one of threads that are left to the system.
pub const FALLBACK_POLICY: &str = "scatter";

/// Spreads threads over nodes and caches, those that share near one another.
pub const SPREAD: &str = "locality-spread";

/// Pages are left to the system.
pub const FIRST_TOUCH: &str = "first-touch";

/// The thread policy where none is asked for.
pub fn default_policy() -> &'static str {
    let ours = threads::THREAD_POLICIES
        .iter()
        .find(|p| p.name() == "locality");
    ours.or(threads::THREAD_POLICIES.first())
        .map_or("", |p| p.name())
}

impl Default for MapOptions {
    fn default() -> Self {
        MapOptions {
            topology: None,
            pus: None,
            cpu_kinds: CpuKindSelection::default(),
            capacity: None,
            siblings: false,
            cost: CostKind::default(),
            threads: None,
            policy: default_policy(),
            data: None,
            mix: None,
            structures: Vec::new(),
            page_size: PlacementPageSize::default(),
            seed: 0,
            phases: None,
            from: None,
            explain: false,
        }
    }
}

impl MapOptions {
    /// What is left of the machine for this many threads.
    pub fn restrictions(&self, threads: usize) -> MachineRestrictions {
        MachineRestrictions {
            pus: self.pus.clone(),
            kinds: self.cpu_kinds.clone(),
            threads: Some(threads),
        }
    }

    /// The data policy and its name; `None` to leave them to the system.
    ///
    /// # Errors
    /// When the parameter goes with another policy.
    pub fn data_policy(&self, nodes: usize) -> Result<Option<NamedPolicy>, String> {
        let default = if nodes > 1 {
            "most-access"
        } else {
            FIRST_TOUCH
        };
        let name = self.data.as_deref().unwrap_or(default);
        let policy: Box<dyn DataPolicy> = match (name, self.mix) {
            ("locality-balance", Some(mix)) => Box::new(LocalityBalancePolicy { mix }),
            ("random", None) => Box::new(RandomDataPolicy { seed: self.seed }),
            (_, Some(_)) => return Err("--mix goes with --data locality-balance".to_owned()),
            (FIRST_TOUCH, None) if self.structures.is_empty() => return Ok(None),
            (name, None) => data::data_policy_by_name(name)?,
        };
        Ok(Some((name.to_owned(), policy)))
    }

    /// Phases are decided together, so that they gain over one placement.
    pub fn is_decided_together(&self) -> bool {
        let phases = self.phases.as_ref();
        phases.is_some_and(|p| p.rule == PhaseRule::Together)
    }

    /// What else was asked for, to be kept with the placement; but not the intervals of phases,
    /// which a [`hither_profile::PolicyChoice`] keeps itself.
    pub fn record(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::new();
        let mut keep = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                options.insert(name.to_owned(), value);
            }
        };
        keep("pus", self.pus.as_ref().map(ToString::to_string));
        keep("threads", self.threads.as_ref().map(ToString::to_string));
        keep("siblings", self.siblings.then(|| "true".to_owned()));
        keep("mix", self.mix.map(|m| m.to_string()));
        keep("from", self.from.as_ref().map(|f| f.display().to_string()));
        for (name, decision) in &self.structures {
            keep(&format!("structure {name}"), Some(decision.to_string()));
        }
        if let Some(phases) = &self.phases {
            let limits = phases.limits;
            let of_rule = match phases.rule {
                PhaseRule::Together => vec![
                    ("thread-move", limits.thread_move.to_string()),
                    ("page-move", limits.page_move.to_string()),
                ],
                PhaseRule::Opt => vec![
                    ("min-heterogeneity", limits.heterogeneity.to_string()),
                    ("min-amount", limits.amount.to_string()),
                ],
                PhaseRule::Kmaf => Vec::new(),
            };
            keep("rule", Some(phases.rule.name().to_owned()));
            keep("phase-window", phases.window.map(|n| n.to_string()));
            keep("phase-difference", Some(phases.difference.to_string()));
            for (name, value) in of_rule {
                keep(name, Some(value));
            }
        }
        options
    }
}
