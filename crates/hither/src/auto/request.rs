//! What `hither auto` is asked to do, on which machine, and by which mapper.
use std::fs::File;
use std::os::fd::OwnedFd;

use hither_profile::NodeIx;
use hither_sys::{Cpu, Node};

use super::analysis::fault_rate::SamplingLimits;
use super::analysis::SharerId;
use super::event_log::LiveView;
use super::mechanism::{DetectionMechanism, MechanismParameters};
use super::sampler::SamplerChoice;

/// What is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementScope {
    pub threads: bool,
    pub pages: bool,
}

/// This machine, all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuNodeMap {
    /// The node of each processor, by the kernel's number of that.
    pub node_of: Vec<NodeIx>,
    /// The kernel's numbers of the nodes.
    pub nodes: Vec<Node>,
}

impl CpuNodeMap {
    #[must_use]
    pub fn node_of(&self, cpu: Cpu) -> NodeIx {
        let node = self.node_of.get(cpu.0 as usize);
        node.copied().unwrap_or_default()
    }

    /// The kernel's number of the node of a processor.
    #[must_use]
    pub fn number_of(&self, cpu: Cpu) -> Node {
        let node = self.nodes.get(self.node_of(cpu).at());
        node.copied().unwrap_or(Node(0))
    }

    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        let known = |&cpu: &u32| self.node_of[cpu as usize] != NodeIx(u32::MAX);
        (0..self.node_of.len() as u32).filter(known).collect()
    }
}

/// What a mapper is asked.
pub struct MappingQuery<'a> {
    /// Threads i < j that share, with the weight of their events.
    pub pairs: &'a [(SharerId, SharerId, u32)],
    /// The events since the last question.
    pub new_events: &'a [(SharerId, SharerId)],
    /// Intervals that these are of.
    pub intervals: u32,
    /// Where threads were put, by sharer.
    pub assigned: &'a [Option<Cpu>],
}

/// Maps threads to processing units.
pub trait OnlineMapper {
    /// Where threads belong, those that communicate; `None` when they had better stay.
    fn place_threads(&mut self, question: &MappingQuery) -> Option<Vec<(SharerId, Cpu)>>;
    /// As `--policy` has it.
    fn policy(&self) -> &'static str;
    /// Why the policy could not map, if it could not.
    fn take_error(&mut self) -> Option<String>;
}

/// What to do.
pub struct AutoRequest {
    pub mechanism: DetectionMechanism,
    pub parameters: MechanismParameters,
    pub scope: PlacementScope,
    pub samplers: SamplerChoice,
    pub limits: SamplingLimits,
    pub machine: CpuNodeMap,
    pub mapper: Box<dyn OnlineMapper>,
    /// Takes lines of JSON.
    pub event_log: Option<File>,
    /// Looks on.
    pub live_view: Option<Box<dyn LiveView>>,
    /// What the program is to have as standard output and error instead of ours.
    pub streams: [Option<OwnedFd>; 2],
}
