//! `make bench-sim`: how fast accesses are simulated, on one core: synthetic streams of 64 threads
//! on 4 x X7550, without timing and with it; and what more accesses and more caches cost.
//!
//! Arguments: names of streams to keep; `--accesses N` of a measurement; `--brief` to leave out
//! what more accesses and caches cost; `--json` for a line of JSON for each; `--write STREAM N FILE` writes the stream's accesses in the order in which the
//! threads take turns, each as 8 bytes: the address, and 1 << 63 for a write.
#![forbid(unsafe_code)]
#[path = "../../crates/hither/src/simulate/mod.rs"]
#[allow(dead_code, unused_imports)]
mod simulate;
#[path = "../../crates/hither/src/topology/mod.rs"]
#[allow(dead_code, unused_imports)]
mod topology;

mod machines;
mod streams;

use nix::time::{clock_gettime, ClockId};
use simulate::{Setup, Simulation, Source};
use std::io::Write;
use streams::{Play, Stream};

const ACCESSES: u64 = 8_000_000;
/// Packages of the machine that figures are given for, and of those it is compared with.
const PACKAGES: u32 = 4;
const MORE_PACKAGES: [u32; 4] = [1, 2, 8, 16];

struct Asked {
    streams: Vec<String>,
    accesses: u64,
    json: bool,
    brief: bool,
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let mut asked = Asked {
        streams: Vec::new(),
        accesses: ACCESSES,
        json: false,
        brief: false,
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--json" => asked.json = true,
            "--brief" => asked.brief = true,
            "--accesses" => asked.accesses = number(words.next()),
            "--write" => {
                let name = words.next().unwrap_or_default();
                let accesses = number(words.next());
                write(&name, accesses, &words.next().unwrap_or_default());
                return;
            }
            _ => asked.streams.push(word),
        }
    }
    let kept: Vec<&Stream> = streams::ALL
        .iter()
        .filter(|s| asked.streams.is_empty() || asked.streams.iter().any(|k| k == s.name))
        .collect();
    speeds(&asked, &kept);
    if !asked.brief {
        scaling(&asked, &kept);
    }
    if !asked.json {
        println!("\nmost memory held: {} MiB", peak() >> 20);
    }
}

fn number(word: Option<String>) -> u64 {
    let read = word.as_deref().and_then(|w| w.parse().ok());
    read.unwrap_or_else(|| panic!("a number is needed, not {word:?}"))
}

/// Each stream on the machine that targets are given for.
fn speeds(asked: &Asked, kept: &[&Stream]) {
    if !asked.json {
        println!(
            "M accesses/s on one core, {} packages of X7550, {} threads, {} accesses",
            PACKAGES,
            PACKAGES * 16,
            asked.accesses
        );
        println!("{:9} {:>8} {:>8}", "stream", "untimed", "timed");
    }
    for stream in kept {
        let untimed = measure(asked, stream, PACKAGES, false, asked.accesses);
        let timed = measure(asked, stream, PACKAGES, true, asked.accesses);
        if !asked.json {
            println!("{:9} {untimed:8.1} {timed:8.1}", stream.name);
        }
    }
}

/// What more accesses and more caches cost.
fn scaling(asked: &Asked, kept: &[&Stream]) {
    if !asked.json {
        println!("\nuntimed, {} packages, by accesses:", PACKAGES);
    }
    for stream in kept {
        let parts = [asked.accesses / 4, asked.accesses / 2, asked.accesses * 2];
        let speeds = parts.map(|n| measure(asked, stream, PACKAGES, false, n));
        if !asked.json {
            let [a, b, c] = speeds;
            println!(
                "{:9} {a:8.1} (/ 4) {b:8.1} (/ 2) {c:8.1} (x 2)",
                stream.name
            );
        }
    }
    if !asked.json {
        println!(
            "\nuntimed, {} accesses, by packages {MORE_PACKAGES:?}:",
            asked.accesses
        );
    }
    for stream in kept {
        let speeds = MORE_PACKAGES.map(|p| measure(asked, stream, p, false, asked.accesses));
        if !asked.json {
            print!("{:9}", stream.name);
            speeds.iter().for_each(|s| print!(" {s:8.1}"));
            println!();
        }
    }
}

/// Simulates a stream; M accesses/s.
fn measure(asked: &Asked, stream: &Stream, packages: u32, timed: bool, accesses: u64) -> f64 {
    let machine = machines::x7550(packages);
    let units: Vec<u32> = (0..machine.units.len() as u32).collect();
    let mut play = Play::new(stream, units.len() as u32, accesses);
    let setup = Setup {
        units: &units,
        home: &|_| None,
        group: None,
    };
    let mut simulation = Simulation::new(&machine, timed).expect("the machine is sound");
    let start = processor_seconds();
    let outcome = simulation
        .window(&mut play, &setup, true)
        .expect("the stream is sound");
    let seconds = processor_seconds() - start;
    let played = outcome.counts.accesses;
    if asked.json {
        println!(
            "{{\"stream\": \"{}\", \"mode\": \"{}\", \"packages\": {packages}, \"caches\": {}, \"accesses\": {played}, \"seconds\": {seconds:.6}, \"rss\": {}}}",
            stream.name,
            if timed { "timed" } else { "untimed" },
            machine.levels.iter().map(|l| l.caches).sum::<u32>(),
            peak(),
        );
    }
    played as f64 / seconds / 1e6
}

/// Writes a stream's accesses, the threads in turn.
fn write(name: &str, accesses: u64, file: &str) {
    let stream = streams::ALL.iter().find(|s| s.name == name);
    let stream = stream.unwrap_or_else(|| panic!("there is no stream {name:?}"));
    let threads = PACKAGES * 16;
    let mut play = Play::new(stream, threads, accesses);
    let out = std::fs::File::create(file).expect("the file can be written");
    let mut out = std::io::BufWriter::new(out);
    let mut pieces = vec![Vec::new(); threads as usize];
    loop {
        for thread in 0..threads {
            play.next(thread, &mut pieces[thread as usize]);
        }
        if pieces[0].is_empty() {
            break;
        }
        for n in 0..pieces[0].len() {
            for piece in &pieces {
                let word = piece[n].address | u64::from(piece[n].write) << 63;
                out.write_all(&word.to_le_bytes()).expect("disk space");
            }
        }
    }
}

/// Processor time of this process.
fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a processor clock");
    now.tv_sec() as f64 + now.tv_nsec() as f64 * 1e-9
}

/// Bytes: the most memory that this process held at a time.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
