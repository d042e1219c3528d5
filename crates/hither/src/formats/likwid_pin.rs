//! likwid-pin: pins the first thread and then each as it is created.
//! `$(hither map app.place.json --format likwid-pin) ./app`
use super::placed_processes::{comma_list, largest_process, PlacedProcess};
use super::LauncherFormat;
use hither_profile::Placement;

/// Bits of likwid-pin's mask of threads to skip.
const SKIPPABLE: usize = 64;

pub struct LikwidPinFormat;

impl LauncherFormat for LikwidPinFormat {
    fn name(&self) -> &'static str {
        "likwid-pin"
    }

    fn summary(&self) -> &'static str {
        "pthreads and OpenMP: $(hither map ... --format likwid-pin) ./app"
    }

    fn write(&self, placement: &Placement) -> Result<String, String> {
        let process = largest_process(placement)?;
        let skip = skip_mask(&process)?;
        let list = likwid_cpu_list(&process.pus(), placement.machine.units as usize)?;
        Ok(format!("likwid-pin -q -s {skip:#x} -c {list}\n"))
    }
}

/// likwid-pin drops repeated numbers from a list with commas, and starts again at its
/// beginning when there are more threads. A list chained by `@` keeps them, but may not be longer than the
/// machine has PUs.
fn likwid_cpu_list(pus: &[u32], units: usize) -> Result<String, String> {
    let mut distinct = Vec::new();
    for pu in pus {
        if !distinct.contains(pu) {
            distinct.push(*pu);
        }
    }
    if pus.iter().zip(distinct.iter().cycle()).all(|(a, b)| a == b) {
        return Ok(comma_list(&distinct));
    }
    if pus.len() > units {
        return Err(format!("likwid-pin can give {} threads to {units} PUs only in turn, and this placement is another; use --format env or taskset", pus.len()));
    }
    let texts: Vec<String> = pus.iter().map(u32::to_string).collect();
    Ok(texts.join("@"))
}

/// Bit n is set for the n-th thread created, from 0, if it is not placed. The first
/// thread of the process is not created, and cannot be skipped. A mask also keeps
/// likwid-pin from guessing which threads are a runtime's own.
fn skip_mask(process: &PlacedProcess) -> Result<u64, String> {
    let last = process.placed.last().map_or(0, |(thread, _)| *thread);
    let mut mask = 0;
    for thread in 0..last {
        if process.placed.iter().any(|(placed, _)| *placed == thread) {
            continue;
        }
        match thread {
            0 => return Err("likwid-pin pins the first thread of a process always, and this placement leaves it to the system; use another format".to_owned()),
            1..=SKIPPABLE => mask |= 1 << (thread - 1),
            _ => return Err(format!("likwid-pin cannot skip thread {thread}, which is left to the system; use another format")),
        }
    }
    Ok(mask)
}
