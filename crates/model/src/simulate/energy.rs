//! Energy of what was counted: static power times time, and dynamic energy per event. Components
//! as in Locality and Balance 6: cores, caches, interconnect, memory controllers, DRAM.
use super::counts::SimulationCounts;
use super::simulated_machine::SimulatedMachine;

/// J.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ComponentEnergy {
    /// Static power times time.
    pub fixed: f64,
    /// Energy of the events counted.
    pub dynamic: f64,
}

/// By component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergyBreakdown {
    /// Cores.
    pub cores: ComponentEnergy,
    /// By level.
    pub caches: Vec<ComponentEnergy>,
    /// Links.
    pub interconnect: ComponentEnergy,
    /// Memory controllers.
    pub controllers: ComponentEnergy,
    /// Memory.
    pub dram: ComponentEnergy,
}

impl EnergyBreakdown {
    /// Sum of all components, J.
    #[must_use]
    pub fn total(&self) -> f64 {
        let sum = self.sum();
        sum.fixed + sum.dynamic
    }

    /// That of static power and of events, over all components.
    #[must_use]
    pub fn sum(&self) -> ComponentEnergy {
        let mut sum = ComponentEnergy::default();
        let parts = [self.cores, self.interconnect, self.controllers, self.dram];
        for part in parts.iter().chain(&self.caches) {
            sum += *part;
        }
        sum
    }
}

/// Energy of a run on a machine: the whole machine's static power lasts for `counts.cycles`, so
/// without timing there is dynamic energy only.
#[must_use]
pub fn energy_breakdown(machine: &SimulatedMachine, counts: &SimulationCounts) -> EnergyBreakdown {
    let of = &machine.energy;
    let seconds = counts.cycles / (machine.core.frequency * 1e9);
    // Coefficients of events are in nJ.
    let joules = |watts: f64, nano: f64| ComponentEnergy {
        fixed: watts * seconds,
        dynamic: nano * 1e-9,
    };
    let at = |of: &[f64], n: usize| of.get(n).copied().unwrap_or(0.0);
    let mut cores: Vec<u32> = machine.units.iter().map(|u| u.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let levels = machine.levels.iter().enumerate().map(|(n, level)| {
        let touches = counts.levels.get(n).map_or(0, |l| l.touches) as f64;
        let watts = at(&of.cache_static, n) * f64::from(level.caches);
        joules(watts, at(&of.cache_access, n) * touches)
    });
    let mut split = EnergyBreakdown {
        cores: joules(
            of.core_static * cores.len() as f64,
            of.instruction * counts.instructions as f64,
        ),
        caches: levels.collect(),
        ..EnergyBreakdown::default()
    };
    for n in 0..machine.links.links.len() {
        let bytes = counts.link_bytes.get(n).copied().unwrap_or(0) as f64;
        let nano = at(&of.link_byte, n) * bytes;
        split.interconnect += joules(at(&of.link_static, n), nano);
    }
    for n in 0..machine.nodes.len() {
        let node = counts.nodes.get(n).copied().unwrap_or_default();
        let lines = node.local_reads + node.remote_reads + node.local_writes + node.remote_writes;
        let nano = at(&of.controller_request, n) * lines as f64;
        split.controllers += joules(at(&of.controller_static, n), nano);
        let nano = at(&of.dram_line, n) * lines as f64 + at(&of.dram_row, n) * node.rows as f64;
        split.dram += joules(at(&of.dram_static, n), nano);
    }
    split
}

impl std::ops::AddAssign for ComponentEnergy {
    fn add_assign(&mut self, other: ComponentEnergy) {
        self.fixed += other.fixed;
        self.dynamic += other.dynamic;
    }
}
