//! The placement that a policy would make of a profile, to count by.
use anyhow::Result;
use std::path::{Path, PathBuf};

use super::AssessmentOptions;
use crate::app::map::input::{self, Source};
use crate::app::map::machine::{self, MapTarget};
use crate::app::map::options::MapOptions;
use crate::app::map::place;
use hither_model::topology::{self, MachineRestrictions};
use hither_profile::{Placement, Profile};

/// What to call it, and the placement for the machine of the options, else the traced one; `None` where
/// no policy is named.
///
/// # Errors
/// A sentence when the policy cannot place this profile.
pub fn placement_by_policy(
    file: &Path,
    options: &AssessmentOptions,
    profile: &Profile,
) -> Result<Option<(PathBuf, Placement)>> {
    let Some(policy) = &options.policy else {
        return Ok(None);
    };
    let input = input::read(&Source::Profile(file.to_owned()), None, true)?;
    let target = target(options, profile)?;
    let mapped = policy.map_options(MapOptions::default())?;
    let (placement, _) = place(&mapped, &input, &target, None)?;
    let placement = policy.left_to_system(placement).by_roles(&profile.roles);
    Ok(Some((
        format!("policy {}", policy.name()).into(),
        placement,
    )))
}

fn target(options: &AssessmentOptions, profile: &Profile) -> Result<MapTarget> {
    let cost = MapOptions::default().cost;
    let traced = || topology::from_xml(&profile.meta.machine.topology_xml);
    let traced = options.topology.is_none().then(traced).flatten();
    let name = options.topology.as_deref();
    let selected = match traced.and_then(super::machine::whole_machine) {
        Some(traced) => traced,
        None => topology::select_machine(name, &MachineRestrictions::default())?,
    };
    machine::of_selected(selected, name, cost)
}
