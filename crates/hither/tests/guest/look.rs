//! What `look` (look.c) saw of a program from outside, and whether that is what a
//! placement asks for. Nothing here is told by hither.
use std::collections::BTreeMap;

use hither_profile::{Placement, ProcessIx, RegionIdentity, RegionKind};

const PAGE: u64 = 4096;

pub struct Thread {
    pub tid: i32,
    pub allowed: String,
    /// The units it was seen on, a bit each.
    pub units: u64,
    pub name: String,
}

pub struct Process {
    pub pid: i32,
    pub rank: Option<u32>,
    pub name: String,
    pub threads: Vec<Thread>,
    pub maps: Vec<String>,
    pub numa: Vec<String>,
    /// Node of each page that has memory, by address.
    pub nodes: BTreeMap<u64, u32>,
}

/// Pages that were placed and have memory, and those of them on their node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pages {
    pub there: u64,
    pub right: u64,
}

impl Pages {
    fn count(&mut self, pages: u64, right: bool) {
        self.there += pages;
        self.right += if right { pages } else { 0 };
    }

    pub fn add(&mut self, other: Pages) {
        self.there += other.there;
        self.right += other.right;
    }

    /// Whether so many of 100 are where they belong.
    pub fn good(self, percent: u64) -> bool {
        self.right * 100 >= self.there * percent
    }
}

/// Reads what `look` wrote, by process id.
pub fn read(text: &str) -> Vec<Process> {
    let mut processes: Vec<Process> = Vec::new();
    for line in text.lines() {
        let (kind, rest) = line.split_at(2);
        let mut words = rest.split(' ');
        let mut number = || {
            words
                .next()
                .expect("a word")
                .parse::<i32>()
                .expect("a number")
        };
        if kind == "P " {
            let (pid, rank) = (number(), number());
            processes.push(Process {
                pid,
                rank: u32::try_from(rank).ok(),
                name: words.collect::<Vec<_>>().join(" "),
                threads: Vec::new(),
                maps: Vec::new(),
                numa: Vec::new(),
                nodes: BTreeMap::new(),
            });
            continue;
        }
        let process = processes.last_mut().expect("a process first");
        match kind {
            "T " => process.threads.push(thread(rest)),
            "M " => process.maps.push(rest.to_owned()),
            "N " => process.numa.push(rest.to_owned()),
            _ => process.pages(rest),
        }
    }
    for process in &mut processes {
        process.threads.sort_by_key(|t| t.tid);
    }
    processes.sort_by_key(|p| p.pid);
    processes
}

/// The pages of a mapping with a policy for one node: `(on that node, pages)`. None where
/// some are of a file, which no policy of a mapping moves, or are shared with the process
/// that this one was forked from, or where it is memory that processes share: there the
/// policy that is shown is that of the first page only.
fn nodes_of_policy(line: &str) -> Vec<(bool, u64)> {
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let pages = |word: &str| word.parse::<u64>().expect("pages");
    let Some((_, node)) = words.first().and_then(|policy| policy.split_once(':')) else {
        return Vec::new();
    };
    let on = words
        .iter()
        .filter_map(|word| word.strip_prefix('N')?.split_once('='));
    let found: Vec<_> = on.map(|(on, count)| (on == node, pages(count))).collect();
    let own = words.iter().find_map(|word| word.strip_prefix("anon="));
    let all: u64 = found.iter().map(|(_, count)| count).sum();
    let inherited = words.iter().any(|word| word.starts_with("mapmax="));
    if own.map(pages) == Some(all) && !inherited {
        found
    } else {
        Vec::new()
    }
}

fn thread(line: &str) -> Thread {
    let words: Vec<&str> = line.splitn(5, ' ').collect();
    Thread {
        tid: words[0].parse().expect("a number"),
        allowed: words[2].to_owned(),
        units: u64::from_str_radix(words[3], 16).expect("hexadecimal"),
        name: words[4].to_owned(),
    }
}

impl Process {
    fn pages(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let start = u64::from_str_radix(words[0], 16).expect("an address");
        let (count, node): (u64, u32) = (
            words[1].parse().expect("pages"),
            words[2].parse().expect("a node"),
        );
        self.nodes
            .extend((0..count).map(|i| (start + i * PAGE, node)));
    }

    /// Where the first mapping with this name begins, less its offset in the file.
    fn base(&self, name: &str) -> Option<u64> {
        let line = self
            .maps
            .iter()
            .find(|line| line.ends_with(&format!(" {name}")))?;
        let mut words = line.split_whitespace();
        let (start, _) = words.next()?.split_once('-')?;
        let offset = words.nth(1)?;
        let hexadecimal = |word| u64::from_str_radix(word, 16).ok();
        hexadecimal(start)?.checked_sub(hexadecimal(offset).filter(|_| !name.starts_with('['))?)
    }

    /// By numa_maps: pages of memory with a policy for one node, and those there.
    pub fn by_policy(&self) -> Pages {
        let mut pages = Pages::default();
        for line in &self.numa {
            for (on, count) in nodes_of_policy(line) {
                pages.count(count, on);
            }
        }
        pages
    }

    /// The lines of numa_maps by which a page is elsewhere than its policy says.
    pub fn strays(&self) -> Vec<String> {
        let stray = |line: &&String| nodes_of_policy(line).iter().any(|(on, _)| !on);
        self.numa.iter().filter(stray).cloned().collect()
    }

    /// Where the one mapping of so many bytes is that is shared with others.
    fn shared(&self, size: u64) -> Option<u64> {
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let start_of = |line: &String| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
            (words.next()?.ends_with('s') && end - start == size).then_some(start)
        };
        let found: Vec<u64> = self.maps.iter().filter_map(start_of).collect();
        (found.len() == 1).then(|| found[0])
    }

    fn address(&self, region: &RegionIdentity) -> Option<u64> {
        match region.kind {
            RegionKind::Elf => self.base(&region.file),
            RegionKind::Brk => self.base("[heap]"),
            RegionKind::Shared => self.shared(region.size),
            _ => None,
        }
    }

    /// Page by page: those of programs, libraries and the heap, whose addresses anybody can
    /// tell, where the placement wants them and not only where some policy does.
    pub fn by_page(&self, placement: &Placement, process: ProcessIx) -> Pages {
        let mut pages = Pages::default();
        for places in &placement.phases[0].pages {
            let region = &placement.regions[places.region as usize];
            let Some(base) = self.address(region).filter(|_| region.process == process) else {
                continue;
            };
            for run in &places.runs {
                let node = placement.machine.nodes[run.node().at()];
                for page in run.first()..run.first() + run.pages() {
                    if let Some(&on) = self.nodes.get(&(base + page * PAGE)) {
                        pages.count(1, on == node);
                    }
                }
            }
        }
        pages
    }

    /// The place of its row in the placement: the n-th process of its program and rank.
    pub fn of(&self, placement: &Placement, before: usize) -> Option<ProcessIx> {
        let same = |p: &&(usize, &hither_profile::ProcessIdentity)| {
            let name = p.1.executable.rsplit('/').next().unwrap_or_default();
            let short: String = name.chars().take(15).collect();
            short == self.name && (self.rank.is_none() || p.1.rank == self.rank)
        };
        let rows: Vec<_> = placement.processes.iter().enumerate().collect();
        let row = rows.iter().filter(same).nth(before)?.0;
        Some(ProcessIx(u32::try_from(row).expect("few processes")))
    }

    /// Complaints about threads that were seen elsewhere than on their unit; how many were
    /// there.
    pub fn threads_on_units(
        &self,
        placement: &Placement,
        process: ProcessIx,
    ) -> (Vec<String>, usize) {
        let rows = placement.threads.iter().enumerate();
        let rows: Vec<usize> = rows
            .filter(|(_, t)| t.process == process)
            .map(|(i, _)| i)
            .collect();
        let mut complaints = Vec::new();
        let mut right = 0;
        for (at, seen) in self.threads.iter().enumerate() {
            // Some may have been too short to be seen; those of a process alone at work have
            // numbers in a row.
            let at = if self.threads.len() == rows.len() {
                at
            } else {
                usize::try_from(seen.tid - self.pid).expect("its first thread is the oldest")
            };
            let Some(row) = rows.get(at) else {
                complaints.push(format!(
                    "{} threads seen, {} in the placement",
                    self.threads.len(),
                    rows.len()
                ));
                break;
            };
            let place = placement.phases[0]
                .threads
                .iter()
                .find(|p| p.thread().at() == *row);
            let Some(unit) = place.map(|p| p.os_index()) else {
                continue;
            };
            if seen.allowed == unit.to_string() && seen.units == 1 << unit {
                right += 1;
            } else {
                complaints.push(format!(
                    "thread {row} ({}) belongs on {unit}, has mask {} and was on {:#x}",
                    seen.name, seen.allowed, seen.units
                ));
            }
        }
        (complaints, right)
    }
}
