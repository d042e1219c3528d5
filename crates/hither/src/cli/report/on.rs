//! The options that say on what a profile is counted; `report` and `check` have them in common.
use std::path::PathBuf;

use crate::app::assessment::setup::MAX_NODES;
use crate::app::assessment::AssessmentOptions;
use crate::app::policy_pair::PolicyPair;
use crate::cli::policy_values::PolicyParser;

/// On what threads and pages are counted.
#[derive(Debug, clap::Args)]
pub struct ReportMachineArgs {
    /// Placement to count threads and pages by, as `hither map` wrote it
    #[arg(short, long, value_name = "FILE")]
    placement: Option<PathBuf>,

    /// Policy to count them by instead, as `hither map --policy` takes it, in a placement that is
    /// not kept
    #[arg(long, value_name = "POLICY", value_parser = PolicyParser::PLACEABLE, hide_possible_values = true, conflicts_with = "placement")]
    policy: Option<PolicyPair>,

    /// NUMA nodes to count the threads on [default: those of the machine, or 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_NODES)))]
    nodes: Option<u16>,

    /// Machine: a name of `hither topo --list`, an hwloc XML file, or hwloc's short notation
    /// [default: that of the placement, or the traced one]
    #[arg(long, value_name = "NAME|FILE|STRING")]
    topology: Option<String>,
}

impl ReportMachineArgs {
    pub fn options(&self) -> AssessmentOptions {
        AssessmentOptions {
            placement: self.placement.clone(),
            policy: self.policy.clone(),
            nodes: self.nodes,
            topology: self.topology.clone(),
            ..AssessmentOptions::default()
        }
    }

    /// As they are typed.
    pub fn words(&self) -> Vec<String> {
        let placement = self.placement.as_ref().map(|p| p.display().to_string());
        let options = [
            ("-p", placement),
            ("--policy", self.policy.as_ref().map(PolicyPair::name)),
            ("--nodes", self.nodes.map(|n| n.to_string())),
            ("--topology", self.topology.clone()),
        ];
        let given = options
            .into_iter()
            .filter_map(|(option, value)| Some((option, value?)));
        given
            .flat_map(|(option, value)| [option.to_owned(), value])
            .collect()
    }
}
