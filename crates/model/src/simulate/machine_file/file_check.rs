//! Rejects impossible values, with their line.
use super::toml_tables::{
    CacheTable, LinkScope, LinkTable, MachineFile, MemoryTable, SpannedCount, SpannedNumber,
    SpannedText,
};
use super::{shipped_machine_file, MachineFileError, MachineFileText, MAX_BYTES};
use crate::simulate::simulated_machine::{PrefetcherKind, ReplacementPolicy};
use std::ops::{Range, RangeInclusive};
use toml::Spanned;

/// Most of a number that counts (cores, bytes of a bus, entries of a window).
const MOST_COUNT: u64 = 1 << 16;
/// Most outstanding misses, channels, and banks of a channel: each takes memory, or time at each
/// miss.
const MOST_PLACES: u64 = 1 << 10;
/// Most banks of a package, and most bytes of a message.
const MOST_BANKS: u64 = 1 << 14;
const MOST_MESSAGE: u64 = 1 << 13;
/// Most ways of a cache, and those of a tree.
const MOST_WAYS: u64 = 1 << 10;
const MOST_TREE_WAYS: u64 = 32;
/// Most bytes of a cache.
const MOST_CACHE: u64 = 1 << 36;
/// Ranges of numbers: far beyond real machines, but such that a simulation still ends.
const FREQUENCY: RangeInclusive<f64> = 0.01..=20.0;
const WIDTH: RangeInclusive<f64> = 0.1..=64.0;
/// ns or cycles, and clocks of a memory.
const TIME: RangeInclusive<f64> = 0.0..=20_000.0;
const CLOCKS: RangeInclusive<f64> = 0.0..=1000.0;
const TRANSFERS: RangeInclusive<f64> = 10.0..=100_000.0;
const BANDWIDTH: RangeInclusive<f64> = 0.1..=100_000.0;
/// W or nJ.
const ENERGY: RangeInclusive<f64> = 0.0..=1e6;

/// A file without impossible values.
pub struct CheckedMachineFile<'a> {
    pub source: MachineFileText<'a>,
    pub file: MachineFile,
    /// Of the generic file: for kinds of links that this one leaves out.
    fallback: Vec<Spanned<LinkTable>>,
}

/// A checked count.
pub fn checked_u32(count: &SpannedCount) -> u32 {
    u32::try_from(*count.get_ref()).unwrap_or(u32::MAX)
}

/// The file as written.
///
/// # Errors
/// When it is not TOML or lacks a key.
pub fn parse(source: MachineFileText) -> Result<MachineFile, MachineFileError> {
    if source.text.len() > MAX_BYTES {
        let what = format!("the file is larger than {MAX_BYTES} bytes, which no machine needs");
        return Err(source.error(0..0, what));
    }
    toml::from_str(source.text).map_err(|e| {
        let what = e.message().replace('\n', ", ");
        let at = e.span().unwrap_or(0..0);
        source.error(at, format!("{what} (docs/simulation.md lists the keys)"))
    })
}

impl<'a> CheckedMachineFile<'a> {
    /// # Errors
    /// When something in it cannot be.
    pub fn new(
        source: MachineFileText<'a>,
        file: MachineFile,
    ) -> Result<CheckedMachineFile<'a>, MachineFileError> {
        let fallback = parse(shipped_machine_file(None))?.links;
        let checked = CheckedMachineFile {
            source,
            file,
            fallback,
        };
        checked.check_core()?;
        checked.check_caches()?;
        checked.check_memory(&checked.file.memory)?;
        if let Some(far) = &checked.file.far_memory {
            checked.check_memory(far)?;
        }
        checked.check_links()?;
        Ok(checked)
    }

    /// GHz.
    pub fn frequency(&self) -> f64 {
        *self.file.core.frequency_ghz.get_ref()
    }

    /// Bytes.
    pub fn line(&self) -> u32 {
        checked_u32(&self.file.line)
    }

    /// Of nodes with units, or of those without.
    pub fn memory(&self, far: bool) -> &MemoryTable {
        let near = &self.file.memory;
        let memory = if far {
            self.file.far_memory.as_ref()
        } else {
            None
        };
        memory.unwrap_or(near).get_ref()
    }

    /// The kind of link; as in the generic file where this one has none.
    pub fn link(&self, between: LinkScope) -> Option<&LinkTable> {
        let links = self.file.links.iter().chain(&self.fallback);
        let mut links = links.map(Spanned::get_ref);
        links.find(|l| l.between == between)
    }

    /// The kind of link, if the file has it.
    pub fn link_in_file(&self, between: LinkScope) -> Option<&LinkTable> {
        let mut links = self.file.links.iter().map(Spanned::get_ref);
        links.find(|l| l.between == between)
    }

    /// Cycles of a time given in ns or in cycles, and where it is.
    ///
    /// # Errors
    /// When it is given in both or in neither, or is no time.
    pub fn time_in_cycles(
        &self,
        (ns, cycles): (&Option<SpannedNumber>, &Option<SpannedNumber>),
        name: &str,
    ) -> Result<(f64, Range<usize>), MachineFileError> {
        match (ns, cycles) {
            (Some(ns), None) => {
                self.check_number(ns, &format!("{name}_ns"), &TIME)?;
                Ok((ns.get_ref() * self.frequency(), ns.span()))
            }
            (None, Some(cycles)) => {
                self.check_number(cycles, &format!("{name}_cycles"), &TIME)?;
                Ok((*cycles.get_ref(), cycles.span()))
            }
            (Some(both), Some(_)) => {
                let what = format!("{name} is given twice; leave {name}_ns or {name}_cycles");
                Err(self.source.error(both.span(), what))
            }
            (None, None) => {
                let what = format!("there is no {name}; write {name}_ns or {name}_cycles");
                Err(self.source.error(0..0, what))
            }
        }
    }

    /// [`CheckedMachineFile::time`]; a missing time is reported at the table that lacks it.
    ///
    /// # Errors
    /// As there.
    pub fn time_in_cycles_at(
        &self,
        table: &Range<usize>,
        time: (&Option<SpannedNumber>, &Option<SpannedNumber>),
        name: &str,
    ) -> Result<(f64, Range<usize>), MachineFileError> {
        let absent = time.0.is_none() && time.1.is_none();
        self.time_in_cycles(time, name).map_err(|e| match absent {
            true => self.source.error(table.clone(), e.what),
            false => e,
        })
    }

    fn check_number(
        &self,
        number: &SpannedNumber,
        name: &str,
        range: &RangeInclusive<f64>,
    ) -> Result<(), MachineFileError> {
        let value = *number.get_ref();
        // Also rejects NaN.
        if range.contains(&value) {
            return Ok(());
        }
        let (least, most) = (range.start(), range.end());
        let what = format!("{name} = {value} is impossible; write a number from {least} to {most}");
        Err(self.source.error(number.span(), what))
    }

    fn check_count(
        &self,
        count: &SpannedCount,
        name: &str,
        most: u64,
    ) -> Result<(), MachineFileError> {
        if (1..=most).contains(count.get_ref()) {
            return Ok(());
        }
        let value = count.get_ref();
        let what = format!("{name} = {value} is impossible; write 1 to {most}");
        Err(self.source.error(count.span(), what))
    }

    fn check_source(&self, text: &SpannedText) -> Result<(), MachineFileError> {
        if !text.get_ref().trim().is_empty() {
            return Ok(());
        }
        let what = "the source is empty; say where these figures come from";
        Err(self.source.error(text.span(), what))
    }

    fn check_core(&self) -> Result<(), MachineFileError> {
        let line = *self.file.line.get_ref();
        if !line.is_power_of_two() || !(16..=4096).contains(&line) {
            let what = format!(
                "a line of {line} bytes is impossible; write a power of two from 16 to 4096"
            );
            return Err(self.source.error(self.file.line.span(), what));
        }
        let core = &self.file.core;
        self.check_number(&core.frequency_ghz, "frequency_ghz", &FREQUENCY)?;
        self.check_number(&core.width, "width", &WIDTH)?;
        self.check_count(&core.window, "window", MOST_COUNT)?;
        self.check_count(&core.misses, "misses", MOST_PLACES)?;
        self.check_number(&core.static_w, "static_w", &ENERGY)?;
        self.check_number(&core.instruction_nj, "instruction_nj", &ENERGY)?;
        self.check_source(&core.source)?;
        let coherence = &self.file.coherence;
        self.check_count(&coherence.data_bytes, "data_bytes", MOST_MESSAGE)?;
        let control = &coherence.control_bytes;
        self.check_count(control, "control_bytes", MOST_MESSAGE)?;
        self.check_source(&coherence.source)?;
        let inside = (&coherence.inside_ns, &coherence.inside_cycles);
        self.time_in_cycles_at(&coherence.source.span(), inside, "inside")?;
        Ok(())
    }

    fn check_caches(&self) -> Result<(), MachineFileError> {
        let caches = &self.file.caches;
        if caches.is_empty() {
            let what = "there is no cache; write a [[cache]] for each level";
            return Err(self.source.error(0..0, what));
        }
        let mut before: Option<(u64, f64)> = None;
        for table in caches {
            let cache = table.get_ref();
            self.check_cache(cache)?;
            let level = *cache.level.get_ref();
            let time = (&cache.latency_ns, &cache.latency_cycles);
            let (latency, place) = self.time_in_cycles_at(&table.span(), time, "latency")?;
            if let Some((under, faster)) = before {
                if level <= under {
                    let what = format!("L{level} comes after L{under}; write caches from the nearest to the core outwards");
                    return Err(self.source.error(cache.level.span(), what));
                }
                if latency <= faster {
                    let what = format!("L{level} answers after {latency:.1} cycles, no later than L{under} below it ({faster:.1}); correct one of the two latencies");
                    return Err(self.source.error(place, what));
                }
            }
            before = Some((level, latency));
        }
        Ok(())
    }

    fn check_cache(&self, cache: &CacheTable) -> Result<(), MachineFileError> {
        self.check_count(
            &cache.level,
            "level",
            super::topology_sites::MAX_CACHE_LEVELS as u64,
        )?;
        self.check_count(&cache.bytes, "bytes", MOST_CACHE)?;
        self.check_count(&cache.ways, "ways", MOST_WAYS)?;
        if cache.replacement == ReplacementPolicy::PseudoLru
            && *cache.ways.get_ref() > MOST_TREE_WAYS
        {
            let what = format!(
                "pseudo-lru is for at most {MOST_TREE_WAYS} ways; write replacement = \"lru\""
            );
            return Err(self.source.error(cache.ways.span(), what));
        }
        if let Some(cores) = &cache.cores {
            self.check_count(cores, "cores", MOST_COUNT)?;
        }
        self.check_whole_sets(cache, *cache.bytes.get_ref())?;
        self.check_number(&cache.static_w, "static_w", &ENERGY)?;
        self.check_number(&cache.access_nj, "access_nj", &ENERGY)?;
        self.check_source(&cache.source)?;
        let Some(prefetch) = &cache.prefetch else {
            return Ok(());
        };
        let possible = match *prefetch.get_ref() {
            PrefetcherKind::Stride { degree } => (1..=64).contains(&degree),
            PrefetcherKind::Stream {
                streams,
                degree,
                distance,
            } => {
                (1..=1024).contains(&streams) && (1..=distance).contains(&degree) && distance <= 64
            }
        };
        if possible {
            return Ok(());
        }
        let what = "this prefetcher is impossible; write streams from 1 to 1024, degree from 1, distance from degree to 64";
        Err(self.source.error(prefetch.span(), what))
    }

    /// Whether a cache of this many bytes is a whole number of sets.
    ///
    /// # Errors
    /// When it is not, at the line of the ways.
    pub fn check_whole_sets(&self, cache: &CacheTable, bytes: u64) -> Result<(), MachineFileError> {
        let (level, ways, line) = (cache.level.get_ref(), *cache.ways.get_ref(), self.line());
        let set = ways * u64::from(line);
        if bytes < set {
            let lines = bytes / u64::from(line);
            let what = format!("L{level} has {lines} lines of {line} bytes, fewer than its {ways} ways; write more bytes or fewer ways");
            return Err(self.source.error(cache.ways.span(), what));
        }
        if !bytes.is_multiple_of(set) {
            let what = format!("an L{level} of {bytes} bytes is impossible: it is no multiple of {ways} ways of {line} bytes; change ways or bytes");
            return Err(self.source.error(cache.ways.span(), what));
        }
        Ok(())
    }

    fn check_memory(&self, table: &Spanned<MemoryTable>) -> Result<(), MachineFileError> {
        let memory = table.get_ref();
        self.check_count(&memory.channels, "channels", MOST_PLACES)?;
        self.check_count(&memory.banks, "banks", MOST_PLACES)?;
        let (channels, banks) = (*memory.channels.get_ref(), *memory.banks.get_ref());
        if channels * banks > MOST_BANKS {
            let most = MOST_BANKS / channels;
            let what = format!(
                "{banks} banks of each of {channels} channels are too many; write at most {most}"
            );
            return Err(self.source.error(memory.banks.span(), what));
        }
        self.check_count(&memory.bus_bytes, "bus_bytes", MOST_COUNT)?;
        let row = *memory.row_bytes.get_ref();
        if !row.is_power_of_two() || !(u64::from(self.line())..=1 << 20).contains(&row) {
            let what = format!(
                "a row of {row} bytes is impossible; write a power of two from a line to 1048576"
            );
            return Err(self.source.error(memory.row_bytes.span(), what));
        }
        self.check_number(&memory.megatransfers, "megatransfers", &TRANSFERS)?;
        let clocks = [(&memory.cl, "cl"), (&memory.rcd, "rcd"), (&memory.rp, "rp")];
        for (number, name) in clocks {
            self.check_number(number, name, &CLOCKS)?;
        }
        let numbers = [
            (&memory.controller_static_w, "controller_static_w"),
            (&memory.request_nj, "request_nj"),
            (&memory.dram_static_w, "dram_static_w"),
            (&memory.line_nj, "line_nj"),
            (&memory.row_nj, "row_nj"),
        ];
        for (number, name) in numbers {
            self.check_number(number, name, &ENERGY)?;
        }
        self.check_source(&memory.source)?;
        let latency = (&memory.latency_ns, &memory.latency_cycles);
        self.time_in_cycles_at(&table.span(), latency, "latency")?;
        Ok(())
    }

    fn check_links(&self) -> Result<(), MachineFileError> {
        let mut known = Vec::new();
        for table in &self.file.links {
            let link = table.get_ref();
            if known.contains(&link.between) {
                let what = "there is a [[link]] of this kind already; leave one";
                return Err(self.source.error(table.span(), what));
            }
            known.push(link.between);
            let latency = (&link.latency_ns, &link.latency_cycles);
            self.time_in_cycles_at(&table.span(), latency, "latency")?;
            self.check_number(&link.bandwidth_gbs, "bandwidth_gbs", &BANDWIDTH)?;
            self.check_number(&link.static_w, "static_w", &ENERGY)?;
            self.check_number(&link.byte_nj, "byte_nj", &ENERGY)?;
            self.check_source(&link.source)?;
        }
        Ok(())
    }
}
