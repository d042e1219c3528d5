//! Placements made by hand, for what no profile brings about: many phases in a short run,
//! some threads only, chosen pages.
use serde_json::{json, Value};

/// What holds from a moment on.
pub struct Phase {
    pub start_ms: u64,
    /// `(thread, kernel's number of its unit)`.
    pub threads: Vec<(u32, u32)>,
    /// `(first page, pages, node)` of the region.
    pub pages: Vec<(u64, u64, u32)>,
}

/// The machine that a placement names.
pub struct Machine {
    pub units: u32,
    pub nodes: u32,
    pub fingerprint: String,
}

/// A placement in JSON of a program of one process with `threads` threads, all made by the
/// first, and the pages of its executable, which has `bytes` bytes in memory. Threads and
/// pages may move every 20 ms.
pub fn placement(
    program: &str,
    bytes: u64,
    threads: u32,
    machine: &Machine,
    phases: &[Phase],
) -> String {
    let thread = |i: u32| match i.checked_sub(1) {
        None => json!({"process": 0, "name": "", "creator": null, "order": 0}),
        Some(order) => json!({"process": 0, "name": "", "creator": 0, "order": order}),
    };
    let phase = |phase: &Phase| {
        let places = phase
            .threads
            .iter()
            .map(|&(t, cpu)| json!([t, cpu, cpu, 0]));
        let runs: Vec<Value> = phase.pages.iter().map(|run| json!(run)).collect();
        let region = json!({"region": 0, "runs": runs});
        json!({
            "start": phase.start_ms * 1_000_000, "sync": [0, 0, 0, 0],
            "objective": {"before": 0, "after": 0}, "threads": places.collect::<Vec<_>>(),
            "pages": if runs.is_empty() { vec![] } else { vec![region] },
        })
    };
    let options = json!({"page-interval": "20000000ns", "thread-interval": "20000000ns"});
    json!({
        "format": hither_profile::PLACEMENT_FORMAT, "writer": "by hand",
        "source": {"file": "none", "command": [program]},
        "machine": {"name": "by hand", "fingerprint": machine.fingerprint, "units": machine.units,
            "cores": machine.units, "nodes": (0..machine.nodes).collect::<Vec<_>>()},
        "policy": {"threads": "by hand", "data": "by hand", "cost": "hops", "seed": 0, "capacity": 64,
            "options": options},
        "objective": {"before": 0, "after": 0}, "why": "Made by hand.",
        "processes": [{"executable": program, "parent": null, "rank": null}],
        "threads": (0..threads).map(thread).collect::<Vec<_>>(), "page_bytes": 4096,
        "regions": [{"kind": "elf", "process": 0, "thread": null, "ordinal": 0, "size": bytes,
            "file": program, "file_offset": 0}],
        "phases": phases.iter().map(phase).collect::<Vec<_>>(),
    })
    .to_string()
}

/// Where a variable of a program is: its first page and how many, from the start of the
/// program, and the bytes of the program in memory.
pub fn pages_of(symbols: &str, variable: &str) -> (u64, u64, u64) {
    let field = |line: &str, at: usize| {
        let word = line.split_whitespace().nth(at).unwrap_or_default();
        u64::from_str_radix(word, 16).unwrap_or(0)
    };
    let line = symbols
        .lines()
        .find(|l| l.ends_with(&format!(" {variable}")));
    let line = line.unwrap_or_else(|| panic!("no {variable}"));
    let (start, size) = (field(line, 0), field(line, 1));
    let end = symbols
        .lines()
        .find(|l| l.ends_with(" _end"))
        .map_or(0, |l| field(l, 0));
    (start / 4096, size / 4096, end.next_multiple_of(4096))
}
