//! The caches of a machine: how many of each level and which unit has which. The topology says
//! which units share a cache, and its size; what it does not give is taken from the file.
use super::file_check::CheckedMachineFile;
use super::toml_tables::CacheTable;
use super::topology_sites::{TopologySites, MAX_CACHE_LEVELS};
use super::MachineFileError;
use crate::simulate::simulated_machine::CacheLevelParameters;
use std::collections::BTreeMap;

/// Most lines of all caches together: four times those of the largest shipped machine.
const MOST_LINES: u64 = 1 << 26;

#[derive(Default)]
pub struct BuiltCaches {
    pub levels: Vec<CacheLevelParameters>,
    /// By unit, its cache of each level.
    pub of_unit: Vec<Vec<u32>>,
    pub static_w: Vec<f64>,
    pub access_nj: Vec<f64>,
}

/// A level before its caches are numbered: which units share one.
struct CacheSharing {
    /// By unit; equal where the cache is.
    cache: Vec<u32>,
    caches: u32,
    bytes: u64,
}

/// # Errors
/// When the topology has a level that the file does not describe, or the two do not fit.
pub fn build_caches(
    file: &CheckedMachineFile,
    sites: &TopologySites,
    notes: &mut Vec<String>,
) -> Result<BuiltCaches, MachineFileError> {
    check_described(file, sites)?;
    let absent = |c: &CacheTable| {
        sites
            .units
            .iter()
            .all(|u| u.caches[level_index(c)].is_none())
    };
    let tables = file.file.caches.iter();
    let tables: Vec<_> = tables
        .filter(|t| !(t.get_ref().optional && absent(t.get_ref())))
        .collect();
    let mut sharing: Vec<CacheSharing> = Vec::new();
    // From memory inwards: caches that the file divides are inside those of the next level.
    for table in tables.iter().rev() {
        let cache = table.get_ref();
        let around = sharing.last().map(|s| s.cache.as_slice());
        let level = match sharing_in_topology(cache, sites) {
            Some(known) => known,
            None => sharing_by_file(cache, sites, around),
        };
        if let Some(around) = around {
            check_nested(file, cache, &level, around)?;
        }
        sharing.push(level);
    }
    sharing.reverse();
    let mut built = BuiltCaches {
        of_unit: vec![Vec::new(); sites.units.len()],
        ..BuiltCaches::default()
    };
    let mut lines = 0u64;
    for (table, level) in tables.into_iter().zip(sharing) {
        let cache = table.get_ref();
        file.check_whole_sets(cache, level.bytes)?;
        let each = level.bytes / u64::from(file.line());
        lines = lines.saturating_add(each.saturating_mul(u64::from(level.caches)));
        if lines > MOST_LINES {
            let what = format!("the caches as far as this one have {lines} lines, of which {MOST_LINES} can be simulated; write fewer bytes");
            return Err(file.source.error(table.span(), what));
        }
        built.add(file, cache, &level)?;
    }
    note_mixed_cores(sites, notes);
    Ok(built)
}

/// Every level of the topology is in the file.
fn check_described(
    file: &CheckedMachineFile,
    sites: &TopologySites,
) -> Result<(), MachineFileError> {
    for level in 0..MAX_CACHE_LEVELS {
        let number = level as u64 + 1;
        let caches = &file.file.caches;
        let has = sites.units.iter().any(|u| u.caches[level].is_some());
        if has
            && !caches
                .iter()
                .any(|c| *c.get_ref().level.get_ref() == number)
        {
            let last = caches.last().map_or(0..0, toml::Spanned::span);
            let what = format!("the topology has an L{number}, which the file does not describe; add a [[cache]] with level = {number}");
            return Err(file.source.error(last, what));
        }
    }
    Ok(())
}

/// Position of a cache's level.
fn level_index(cache: &CacheTable) -> usize {
    *cache.level.get_ref() as usize - 1
}

/// The level as the topology has it; `None` where some unit has no cache of it.
fn sharing_in_topology(cache: &CacheTable, sites: &TopologySites) -> Option<CacheSharing> {
    let level = level_index(cache);
    let mut numbers = BTreeMap::new();
    let mut of_unit = Vec::with_capacity(sites.units.len());
    for unit in &sites.units {
        let next = numbers.len() as u32;
        let number = numbers.entry(unit.caches[level]?.logical).or_insert(next);
        of_unit.push(*number);
    }
    let fastest = sites
        .units
        .iter()
        .max_by_key(|u| (u.kind, std::cmp::Reverse(u.core)));
    let bytes = fastest.and_then(|u| u.caches[level]).map_or(0, |c| c.bytes);
    Some(CacheSharing {
        cache: of_unit,
        caches: numbers.len() as u32,
        bytes: if bytes == 0 {
            *cache.bytes.get_ref()
        } else {
            bytes
        },
    })
}

/// The level as the file divides it: a number of neighbouring cores each, of one package and of one
/// of the caches around.
fn sharing_by_file(
    cache: &CacheTable,
    sites: &TopologySites,
    around: Option<&[u32]>,
) -> CacheSharing {
    let private = *cache.level.get_ref() <= 2;
    let default = if private { 1 } else { u64::MAX };
    let cores = cache.cores.as_ref().map_or(default, |c| *c.get_ref());
    let mut of_unit = Vec::with_capacity(sites.units.len());
    let mut caches = 0;
    let mut current = None;
    let mut taken: Vec<u32> = Vec::new();
    for (at, unit) in sites.units.iter().enumerate() {
        let place = (unit.package, around.map(|a| a[at]));
        let known = taken.last() == Some(&unit.core);
        if current != Some(place) || (!known && taken.len() as u64 >= cores) {
            current = Some(place);
            taken.clear();
            caches += 1;
        }
        if taken.last() != Some(&unit.core) {
            taken.push(unit.core);
        }
        of_unit.push(caches - 1);
    }
    CacheSharing {
        cache: of_unit,
        caches,
        bytes: *cache.bytes.get_ref(),
    }
}

/// Every cache lies within one of those around it.
fn check_nested(
    file: &CheckedMachineFile,
    cache: &CacheTable,
    level: &CacheSharing,
    around: &[u32],
) -> Result<(), MachineFileError> {
    let mut outer = BTreeMap::new();
    for (inner, around) in level.cache.iter().zip(around) {
        if *outer.entry(inner).or_insert(around) != around {
            let number = cache.level.get_ref();
            let what = format!("one L{number} of the topology would lie in two caches of the level around it; write for that level `cores` as a multiple of those that share an L{number}");
            return Err(file.source.error(cache.level.span(), what));
        }
    }
    Ok(())
}

impl BuiltCaches {
    fn add(
        &mut self,
        file: &CheckedMachineFile,
        cache: &CacheTable,
        level: &CacheSharing,
    ) -> Result<(), MachineFileError> {
        let time = (&cache.latency_ns, &cache.latency_cycles);
        let (latency, _) = file.time_in_cycles(time, "latency")?;
        let number = cache.level.get_ref();
        self.levels.push(CacheLevelParameters {
            name: if *number == 1 {
                "L1d".to_owned()
            } else {
                format!("L{number}")
            },
            bytes: level.bytes,
            ways: super::file_check::checked_u32(&cache.ways),
            replacement: cache.replacement,
            // Later than the level below even where both round to the same.
            latency: (latency.round() as u32).max(self.levels.last().map_or(1, |l| l.latency + 1)),
            inclusive: cache.inclusive,
            prefetch: cache.prefetch.as_ref().map(|p| *p.get_ref()),
            caches: level.caches,
        });
        // Leakage grows as the cache does, the energy of an access as its side (CACTI).
        let grown = level.bytes as f64 / *cache.bytes.get_ref() as f64;
        self.static_w.push(cache.static_w.get_ref() * grown);
        self.access_nj
            .push(cache.access_nj.get_ref() * grown.sqrt());
        for (unit, at) in self.of_unit.iter_mut().zip(&level.cache) {
            unit.push(*at);
        }
        Ok(())
    }
}

/// Says so where cores differ.
fn note_mixed_cores(sites: &TopologySites, notes: &mut Vec<String>) {
    let fastest = sites.units.iter().map(|u| u.kind).max();
    if sites.units.iter().any(|u| Some(u.kind) != fastest) {
        notes.push(
            "Cores of all kinds are simulated as those of the fastest kind, with its caches' sizes; who shares a cache is as it is.".to_owned(),
        );
    }
}
