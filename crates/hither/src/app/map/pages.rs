//! Pages to nodes, given where the threads are.
use super::input::MapInput;
use super::machine::MapTarget;
use super::options::{MapOptions, FIRST_TOUCH};
use anyhow::{anyhow, bail, Result};
use hither_model::map::data::page_groups::{
    apply_rules, group_shares, pages_of_group, suggest_decisions, GroupDecision, GroupRule,
    PageGroup,
};
use hither_model::map::data::{self, DataPolicy, DataProblem, FirstTouchPolicy, PlaceablePages};
use hither_model::map::phase_plan::{
    plan_pages, MigrationLimits, PagePlan, PageTiming, PhaseRule, ThreadStage,
};
use hither_profile::{NodeIx, ObjectIx, Profile, RegionIx};
use serde::Serialize;

/// Structures that --explain shows.
const MOST_STRUCTURES: usize = 10;

/// Pages, and where they lie when.
pub struct PagePlacement {
    pub pages: PlaceablePages,
    pub plan: PagePlan,
    /// Which are the page cache's, and are not placed: they lie where they are first touched.
    pub cached: Vec<bool>,
    /// Where each lies first.
    pub after: Vec<NodeIx>,
    /// Where each lies if it is not placed: on its first toucher's node.
    pub before: Vec<NodeIx>,
    /// The data policy; `None` where the pages are left to the system.
    pub policy: Option<String>,
    /// With --explain, the largest first.
    pub structures: Vec<StructurePages>,
}

/// Where the bytes of a data structure are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StructurePages {
    pub name: String,
    /// On each node.
    pub bytes: Vec<u64>,
    /// What suits its pages, for --structure.
    pub suits: GroupDecision,
}

/// Places the pages of a profile; `None` where there are none to speak of.
///
/// # Errors
/// When the profile lacks what the policy needs, or the memory of the machine is too small.
pub fn place_pages(
    options: &MapOptions,
    input: &MapInput,
    target: &MapTarget,
    stages: &[ThreadStage],
    before: &[u32],
) -> Result<Option<PagePlacement>> {
    let nodes = target.tree.nodes.len();
    let policy = options.data_policy(nodes).map_err(|e| anyhow!(e))?;
    let asked = options.data.as_ref().filter(|data| *data != FIRST_TOUCH);
    let Some(profile) = input.profile.as_ref() else {
        return match asked {
            Some(_) => bail!("a matrix says nothing of pages; leave --data out, or give a profile"),
            None => Ok(None),
        };
    };
    let pages = PlaceablePages::from_profile(profile, options.page_size);
    if pages.is_empty() {
        return match asked {
            Some(name) => bail!("data policy {name} needs page accesses, which this profile lacks; trace the program again"),
            None => Ok(None),
        };
    }
    let capacity = data::node_capacities(&target.tree);
    let first = stages.first().map_or(&[][..], |s| &s.threads);
    let problem = DataProblem {
        tree: &target.tree,
        cost: &target.cost,
        threads: first,
        pages: &pages,
        capacity: &capacity,
        current: &[],
        fixed: &[],
    };
    let untouched = |threads| FirstTouchPolicy.place(&DataProblem { threads, ..problem });
    let unplaced = untouched(before).map_err(|why| anyhow!(why))?;
    let cached = data::cached_pages(profile, &pages);
    let fixed = match cached.contains(&true) {
        true => places_of(&cached, &untouched(first).map_err(|why| anyhow!(why))?),
        false => Vec::new(),
    };
    let problem = DataProblem {
        fixed: &fixed,
        ..problem
    };
    let found = match &policy {
        Some((_, policy)) => solve(options, profile, &problem, policy.as_ref(), stages),
        None => FirstTouchPolicy
            .place(&problem)
            .map(|after| (PagePlan::default(), after)),
    };
    let (plan, after) = found.map_err(|why| anyhow!(why))?;
    let structures = match options.explain {
        true => largest_structures(profile, &problem, &after).map_err(|why| anyhow!(why))?,
        false => Vec::new(),
    };
    Ok(Some(PagePlacement {
        structures,
        plan,
        after,
        before: unplaced,
        policy: policy.map(|(name, _)| name),
        pages,
        cached,
    }))
}

/// The nodes of some of the pages.
fn places_of(some: &[bool], nodes: &[NodeIx]) -> Vec<Option<NodeIx>> {
    let places = some.iter().zip(nodes);
    places.map(|(&is, &node)| is.then_some(node)).collect()
}

/// The largest structures, where they are and what suits them.
fn largest_structures(
    profile: &Profile,
    problem: &DataProblem,
    place: &[NodeIx],
) -> Result<Vec<StructurePages>, String> {
    let pages = problem.pages;
    let mut shares = group_shares(profile, pages, place, problem.tree.nodes.len());
    shares.retain(|share| matches!(share.group, PageGroup::Object(_)));
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes.iter().sum::<u64>()));
    shares.truncate(MOST_STRUCTURES);
    let groups: Vec<_> = shares
        .iter()
        .map(|s| pages_of_group(profile, pages, s.group))
        .collect();
    let suited = suggest_decisions(problem, &groups)?;
    let row = |(share, suits): (data::page_groups::GroupShare, GroupDecision)| StructurePages {
        name: match share.group {
            PageGroup::Object(object) => profile.objects[object.at()].name.clone(),
            PageGroup::Region(region) => format!("region:{region}"),
        },
        bytes: share.bytes,
        suits,
    };
    Ok(shares.into_iter().zip(suited).map(row).collect())
}

/// When pages of a profile are used, and how they move.
pub fn page_timing<'a>(
    options: &MapOptions,
    profile: &'a Profile,
    stages: &'a [ThreadStage],
) -> PageTiming<'a> {
    let phases = options.phases.as_ref();
    PageTiming {
        stages,
        slices: &profile.slices,
        whole_run: profile.meta.page_slices == 0,
        rule: phases.map_or(PhaseRule::default(), |p| p.rule),
        limits: phases.map_or(MigrationLimits::default(), |p| p.limits),
    }
}

fn solve(
    options: &MapOptions,
    profile: &Profile,
    problem: &DataProblem,
    policy: &dyn DataPolicy,
    stages: &[ThreadStage],
) -> Result<(PagePlan, Vec<NodeIx>), String> {
    let rules = structure_rules(options, profile, problem.pages)?;
    let fixed = match rules.is_empty() {
        true => problem.fixed.to_vec(),
        false => apply_rules(problem, &rules)?,
    };
    let problem = DataProblem {
        fixed: &fixed,
        ..*problem
    };
    if options.phases.is_none() {
        let after = policy.place(&problem)?;
        return Ok((PagePlan::once(&after), after));
    }
    let plan = plan_pages(&problem, policy, &page_timing(options, profile, stages))?;
    let first = plan.initial_nodes(problem.pages.len());
    // Every page has a first place: the plan covers the whole run.
    let after = first.into_iter().map(Option::unwrap_or_default).collect();
    Ok((plan, after))
}

/// The pages of each structure that is named, decided alike.
fn structure_rules(
    options: &MapOptions,
    profile: &Profile,
    pages: &PlaceablePages,
) -> Result<Vec<GroupRule>, String> {
    let rule = |(name, decision): &(String, _)| {
        let groups = groups(name, profile)?;
        let held = groups
            .into_iter()
            .flat_map(|g| pages_of_group(profile, pages, g));
        Ok(GroupRule {
            pages: held.collect(),
            decision: *decision,
        })
    };
    options.structures.iter().map(rule).collect()
}

/// All structures of this name, or the region of this number.
fn groups(name: &str, profile: &Profile) -> Result<Vec<PageGroup>, String> {
    if let Some(number) = name.strip_prefix("region:") {
        let number = number.parse().ok();
        let known = number.filter(|n| (*n as usize) < profile.regions.len());
        let region = known.ok_or_else(|| {
            let last = profile.regions.len().saturating_sub(1);
            format!("there is no {name}; with --structure give region:0 to region:{last}")
        })?;
        return Ok(vec![PageGroup::Region(RegionIx(region))]);
    }
    let objects = (0..).zip(&profile.objects);
    let same = objects.filter(|(_, object)| object.name == name);
    let groups: Vec<PageGroup> = same
        .map(|(at, _)| PageGroup::Object(ObjectIx(at)))
        .collect();
    if groups.is_empty() {
        return Err(format!(
            "the profile has no data structure \"{name}\"; `hither stat` lists them"
        ));
    }
    Ok(groups)
}
