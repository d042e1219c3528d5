//! What is to be placed: the threads of a profile or of a matrix.
use super::matrix_file;
use anyhow::{bail, Result};
use hither_model::map::CommGraph;
use hither_model::topology::PuList;
use hither_profile::{
    PlacementSource, ProcessIdentity, ProcessIx, Profile, Thread, ThreadIdentity, ThreadIx,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Where threads and what they share are read from.
#[derive(Clone, Debug)]
pub enum Source {
    /// As `hither trace` wrote it.
    Profile(PathBuf),
    /// Communication without a profile.
    Matrix(PathBuf),
}

/// Threads and what they share.
pub struct MapInput {
    pub source: PlacementSource,
    pub profile: Option<Profile>,
    pub processes: Vec<ProcessIdentity>,
    pub threads: Vec<ThreadIdentity>,
    /// Threads to place, in order. Policies number them by their position here.
    pub placed: Vec<ThreadIx>,
    /// The whole run, between the threads to place, numbered so.
    pub comm: CommGraph,
    /// Communication counts in units of 2^-`fraction_bits`.
    pub fraction_bits: i32,
    /// Work of the threads to place; empty where it is not known.
    pub load: Vec<u64>,
    /// The threads of the run, where those above and in the profile are their roles.
    pub recorded: Option<RecordedThreads>,
}

/// What [`Profile::by_roles`] merged.
pub struct RecordedThreads {
    pub threads: Vec<ThreadIdentity>,
    /// By thread, its role.
    pub roles: Vec<ThreadIx>,
    /// By region, its thread.
    pub of_region: Vec<Option<ThreadIx>>,
}

impl MapInput {
    /// Communication between the threads to place, from pairs of all threads.
    pub fn graph(&self, pairs: impl Iterator<Item = (u32, u32, u64)>) -> CommGraph {
        restrict_to_threads(pairs, self.threads.len(), &self.placed)
    }

    /// The same graph in the numbers of all threads.
    pub fn to_all_threads(&self, graph: &CommGraph) -> CommGraph {
        let thread = |at: usize| self.placed[at].0;
        let pairs = graph.pairs();
        let pairs = pairs.map(|(i, j, w)| (thread(i), thread(j), w));
        CommGraph::new(self.threads.len(), pairs)
    }

    /// A unit for every thread from one for each placed thread. Others count
    /// as being where their creator is: their few accesses must count somewhere.
    pub fn units_of_all(&self, units: &[u32]) -> Vec<u32> {
        let mut all = vec![None; self.threads.len()];
        for (thread, unit) in self.placed.iter().zip(units) {
            all[thread.at()] = Some(*unit);
        }
        for at in 0..all.len() {
            let creator = self.threads[at].creator;
            all[at] = all[at].or_else(|| creator.and_then(|c| *all.get(c.at())?));
        }
        let rest = units.first().copied().unwrap_or(0);
        all.into_iter().map(|unit| unit.unwrap_or(rest)).collect()
    }

    /// Leaves a page at most to be placed, so that what cannot be placed at all is still refused.
    pub fn keep_one_page(&mut self) {
        if let Some(profile) = &mut self.profile {
            profile.pages = profile.pages.rows().take(1).collect();
            profile.first_touch = profile.first_touch.rows().take(1).collect();
        }
    }

    /// A sentence, where threads are placed by roles.
    pub fn roles_sentence(&self) -> Option<String> {
        let all = self.recorded.as_ref()?.threads.len();
        let roles = self.threads.len();
        Some(format!("{all} threads are placed in {roles} roles: those that follow one another at the same work, one where the other ran."))
    }

    /// Takes the work of all threads from a file.
    ///
    /// # Errors
    /// A sentence when it does not have a number for each.
    pub fn read_load(&mut self, file: &Path) -> Result<()> {
        let load = matrix_file::read_load(file, self.threads.len())?;
        self.load = self.placed.iter().map(|t| load[t.at()]).collect();
        Ok(())
    }

    /// Back from a unit for every thread to one for each placed thread.
    pub fn units_of_placed(&self, units: &[u32]) -> Vec<u32> {
        self.placed.iter().map(|t| units[t.at()]).collect()
    }
}

/// `only`: the threads to place, if not all that work. `by_roles`: threads that follow one another in
/// the same role are to be placed as one, unless the user names threads.
///
/// # Errors
/// A sentence when it cannot be read, or there is nothing to place.
pub fn read(source: &Source, only: Option<&PuList>, by_roles: bool) -> Result<MapInput> {
    let input = match source {
        Source::Matrix(file) => of_matrix(file, only),
        Source::Profile(folder) => of_profile(folder, only, by_roles && only.is_none()),
    }?;
    if input.placed.is_empty() {
        bail!(
            "{} has no thread to place; trace a program that runs longer, or see --threads",
            input.source.file
        );
    }
    Ok(input)
}

fn of_profile(folder: &Path, only: Option<&PuList>, by_roles: bool) -> Result<MapInput> {
    let mut profile = hither_profile::read(folder)?;
    let recorded = match by_roles {
        true => merge_roles(&mut profile),
        false => None,
    };
    let source = PlacementSource {
        file: folder.display().to_string(),
        command: profile.meta.command.clone(),
    };
    // Others would take a unit from those that work.
    let placed = threads_to_place(&profile.working_threads(), only)?;
    let pairs = profile.comm.iter().map(|c| (c.i.0, c.j.0, c.events));
    let comm = restrict_to_threads(pairs, profile.threads.len(), &placed);
    let load = work_of(&profile.threads, &placed);
    let ranks = ranks(&profile, &placed);
    let processes = profile.meta.processes.iter().zip(ranks);
    let processes = processes.map(|(p, rank)| ProcessIdentity {
        executable: p.executable.clone(),
        parent: p.parent,
        rank,
    });
    Ok(MapInput {
        source,
        processes: processes.collect(),
        threads: names(&profile.threads),
        placed,
        comm,
        fraction_bits: 0,
        load,
        profile: Some(profile),
        recorded,
    })
}

/// Instructions, which Locality and Balance counts; accesses in a profile without.
fn work_of(threads: &[Thread], placed: &[ThreadIx]) -> Vec<u64> {
    let counted = threads.iter().any(|t| t.instructions > 0);
    let work = |t: &ThreadIx| match counted {
        true => threads[t.at()].instructions,
        false => threads[t.at()].accesses(),
    };
    placed.iter().map(work).collect()
}

/// What was merged, if anything was.
fn merge_roles(profile: &mut Profile) -> Option<RecordedThreads> {
    let threads = names(&profile.threads);
    let of_region = profile.regions.iter().map(|r| r.thread).collect();
    *profile = std::mem::take(profile).by_roles();
    (!profile.roles.is_empty()).then(|| RecordedThreads {
        threads,
        roles: profile.roles.clone(),
        of_region,
    })
}

/// Threads of a matrix count as those of one process, made by the first in order.
fn of_matrix(file: &Path, only: Option<&PuList>) -> Result<MapInput> {
    let (graph, fraction_bits) = matrix_file::read(file)?;
    let threads = graph.threads();
    let placed = threads_to_place(&vec![true; threads], only)?;
    let pairs = graph.pairs().map(|(i, j, w)| (i as u32, j as u32, w));
    let comm = restrict_to_threads(pairs, threads, &placed);
    let thread = |n: u32| ThreadIdentity {
        creator: (n > 0).then_some(ThreadIx(0)),
        order: n.saturating_sub(1),
        ..ThreadIdentity::default()
    };
    Ok(MapInput {
        source: PlacementSource {
            file: file.display().to_string(),
            command: Vec::new(),
        },
        profile: None,
        processes: vec![ProcessIdentity::default()],
        threads: (0..threads as u32).map(thread).collect(),
        // A matrix does not say.
        load: Vec::new(),
        placed,
        comm,
        fraction_bits,
        recorded: None,
    })
}

/// The threads that the user names, else those that work.
fn threads_to_place(works: &[bool], only: Option<&PuList>) -> Result<Vec<ThreadIx>> {
    let threads = works.len();
    let Some(list) = only else {
        let all = (0..).map(ThreadIx).take(threads);
        return Ok(all.filter(|t| works[t.at()]).collect());
    };
    let mut chosen = vec![false; threads];
    for number in list.iter() {
        let Some(thread) = chosen.get_mut(number as usize) else {
            let last = threads.saturating_sub(1);
            bail!("there is no thread {number}; with --threads give some of 0-{last}");
        };
        *thread = true;
    }
    let all = (0..).map(ThreadIx).take(threads);
    Ok(all.filter(|t| chosen[t.at()]).collect())
}

fn restrict_to_threads(
    pairs: impl Iterator<Item = (u32, u32, u64)>,
    threads: usize,
    placed: &[ThreadIx],
) -> CommGraph {
    let mut number = vec![None; threads];
    for (at, thread) in placed.iter().enumerate() {
        number[thread.at()] = Some(at as u32);
    }
    let number = |t: u32| number.get(t as usize).copied().flatten();
    let pairs = pairs.filter_map(|(i, j, w)| Some((number(i)?, number(j)?, w)));
    CommGraph::new(placed.len(), pairs)
}

/// Numbers the processes of the program that most of the placed processes run, if there
/// are several: as the profile has their ranks, where it does (of processes of one rank the
/// first is meant), else by process id, since a launcher starts its ranks in order.
fn ranks(profile: &Profile, placed: &[ThreadIx]) -> Vec<Option<u32>> {
    let processes = &profile.meta.processes;
    let mut ranks = vec![None; processes.len()];
    let of = placed.iter().map(|t| profile.threads[t.at()].process);
    let placed: BTreeSet<ProcessIx> = of.collect();
    let mut programs: BTreeMap<&str, Vec<ProcessIx>> = BTreeMap::new();
    for process in placed {
        let program = processes.get(process.at()).map(|p| p.executable.as_str());
        programs
            .entry(program.unwrap_or(""))
            .or_default()
            .push(process);
    }
    let most = programs.into_values().max_by_key(Vec::len);
    let mut most = most.filter(|p| p.len() > 1).unwrap_or_default();
    most.sort_by_key(|p| processes[p.at()].pid);
    let known = most.iter().any(|p| processes[p.at()].rank.is_some());
    let mut taken = BTreeSet::new();
    for (order, process) in (0..).zip(most) {
        let rank = match known {
            true => processes[process.at()].rank,
            false => Some(order),
        };
        ranks[process.at()] = rank.filter(|r| taken.insert(*r));
    }
    ranks
}

/// What each thread is known by in the next run.
fn names(threads: &[Thread]) -> Vec<ThreadIdentity> {
    let mut made = HashMap::new();
    let name = |thread: &Thread| {
        let next = made.entry((thread.process, thread.creator)).or_insert(0);
        let order = *next;
        *next += 1;
        ThreadIdentity {
            process: thread.process,
            name: thread.name.clone(),
            creator: thread.creator,
            order,
            role: thread.role,
        }
    };
    threads.iter().map(name).collect()
}
