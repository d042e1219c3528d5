//! `make bench-sim`: how fast accesses are simulated, on one core: synthetic streams of 64 threads
//! on 4 x X7550, without timing and with it; and what more accesses and more caches cost.
//!
//! Arguments: names of streams to keep; `--accesses N` of a measurement; `--brief` to leave out
//! what more accesses and caches cost; `--json` for a line of JSON for each; names that end in
//! `.hither` are profiles whose bursts are played; `--write STREAM N FILE` writes the stream's
//! accesses in the order in which the threads take turns, each as 8 bytes: the address, and
//! 1 << 63 for a write. Pages of a profile are numbered anew, since they lie far apart.
#![forbid(unsafe_code)]
mod machines;
mod recorded;
mod streams;

use hither_model::simulate::simulated_machine::SimulatedMachine;
use hither_model::simulate::{AccessSource, Simulation, WindowSetup};
use nix::time::{clock_gettime, ClockId};
use recorded::RecordedSource;
use std::io::Write;
use streams::{SyntheticSource, SyntheticStream};

const ACCESSES: u64 = 8_000_000;
/// Packages of the machine that figures are given for, and of those it is compared with.
const PACKAGES: u32 = 4;
const MORE_PACKAGES: [u32; 4] = [1, 2, 8, 16];

struct BenchOptions {
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
    let mut asked = BenchOptions {
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
            "--accesses" => asked.accesses = parse_number(words.next()),
            "--write" => {
                let name = words.next().unwrap_or_default();
                let accesses = parse_number(words.next());
                write_stream(&name, accesses, &words.next().unwrap_or_default());
                return;
            }
            _ => asked.streams.push(word),
        }
    }
    let kept: Vec<&SyntheticStream> = streams::STREAMS
        .iter()
        .filter(|s| asked.streams.is_empty() || asked.streams.iter().any(|k| k == s.name))
        .collect();
    measure_streams(&asked, &kept);
    for profile in asked.streams.iter().filter(|s| is_profile(s)) {
        let [untimed, timed] = [false, true].map(|timed| measure_recording(&asked, profile, timed));
        if !asked.json {
            println!("{profile:9} {untimed:8.1} {timed:8.1}");
        }
    }
    if !asked.brief {
        measure_scaling(&asked, &kept);
    }
    if !asked.json {
        println!("\nmost memory held: {} MiB", peak_rss() >> 20);
    }
}

fn parse_number(word: Option<String>) -> u64 {
    let read = word.as_deref().and_then(|w| w.parse().ok());
    read.unwrap_or_else(|| panic!("a number is needed, not {word:?}"))
}

/// Each stream on the machine that targets are given for.
fn measure_streams(asked: &BenchOptions, kept: &[&SyntheticStream]) {
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
        let untimed = measure_stream(asked, stream, PACKAGES, false, asked.accesses);
        let timed = measure_stream(asked, stream, PACKAGES, true, asked.accesses);
        if !asked.json {
            println!("{:9} {untimed:8.1} {timed:8.1}", stream.name);
        }
    }
}

fn is_profile(name: &str) -> bool {
    name.ends_with(".hither")
}

/// A program's windows on the same machine, until they are as many accesses as asked for; M
/// accesses/s.
fn measure_recording(asked: &BenchOptions, profile: &str, timed: bool) -> f64 {
    let bursts = recorded::open_bursts(profile);
    let machine = machines::x7550(PACKAGES);
    let mut simulation = Simulation::new(&machine, timed).expect("the machine is sound");
    let start = processor_seconds();
    let mut played = 0;
    for window in 0..bursts.windows().len() {
        let mut source = RecordedSource::new(&bursts, window);
        let units = machine.units.len() as u32;
        let units: Vec<u32> = source.thread_range().map(|thread| thread % units).collect();
        played += play_window(&mut simulation, &mut source, &units);
        if played >= asked.accesses {
            break;
        }
    }
    let seconds = processor_seconds() - start;
    print_speed(asked, (profile, PACKAGES, timed), &machine, played, seconds)
}

/// Plays a window; how many accesses that were.
fn play_window(simulation: &mut Simulation, source: &mut impl AccessSource, units: &[u32]) -> u64 {
    let setup = WindowSetup {
        units,
        home: &|_| None,
        next_touch: false,
        page_move: 0.0,
        group: None,
    };
    let outcome = simulation.play_window(source, &setup, true);
    outcome.expect("the accesses are sound").counts.accesses
}

/// What more accesses and more caches cost.
fn measure_scaling(asked: &BenchOptions, kept: &[&SyntheticStream]) {
    if !asked.json {
        println!("\nuntimed, {} packages, by accesses:", PACKAGES);
    }
    for stream in kept {
        let parts = [asked.accesses / 4, asked.accesses / 2, asked.accesses * 2];
        let speeds = parts.map(|n| measure_stream(asked, stream, PACKAGES, false, n));
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
        let speeds = MORE_PACKAGES.map(|p| measure_stream(asked, stream, p, false, asked.accesses));
        if !asked.json {
            print!("{:9}", stream.name);
            speeds.iter().for_each(|s| print!(" {s:8.1}"));
            println!();
        }
    }
}

/// Simulates a stream; M accesses/s.
fn measure_stream(
    asked: &BenchOptions,
    stream: &SyntheticStream,
    packages: u32,
    timed: bool,
    accesses: u64,
) -> f64 {
    let machine = machines::x7550(packages);
    let units: Vec<u32> = (0..machine.units.len() as u32).collect();
    let mut source = SyntheticSource::new(stream, units.len() as u32, accesses);
    let mut simulation = Simulation::new(&machine, timed).expect("the machine is sound");
    let start = processor_seconds();
    let played = play_window(&mut simulation, &mut source, &units);
    let seconds = processor_seconds() - start;
    print_speed(
        asked,
        (stream.name, packages, timed),
        &machine,
        played,
        seconds,
    )
}

/// Says how long so many accesses took; M accesses/s.
fn print_speed(
    asked: &BenchOptions,
    (stream, packages, timed): (&str, u32, bool),
    machine: &SimulatedMachine,
    played: u64,
    seconds: f64,
) -> f64 {
    let mode = if timed { "timed" } else { "untimed" };
    let rate = played as f64 / seconds / 1e6;
    if asked.json {
        println!(
            "{{\"stream\": \"{stream}\", \"mode\": \"{mode}\", \"packages\": {packages}, \"caches\": {}, \"accesses\": {played}, \"seconds\": {seconds:.6}, \"rss\": {}}}",
            machine.levels.iter().map(|l| l.caches).sum::<u32>(),
            peak_rss(),
        );
    }
    rate
}

/// Writes the first accesses of a stream or a profile, the threads in turn.
fn write_stream(name: &str, accesses: u64, file: &str) {
    let out = std::fs::File::create(file).expect("the file can be written");
    let mut out = std::io::BufWriter::new(out);
    if is_profile(name) {
        let bursts = recorded::open_bursts(name);
        let mut pages = recorded::DensePages::default();
        let mut left = accesses;
        for window in 0..bursts.windows().len() {
            let mut source = RecordedSource::new(&bursts, window);
            left -= write_round_robin(&mut source, left, |at| pages.dense_address(at), &mut out);
        }
        return;
    }
    let stream = streams::STREAMS.iter().find(|s| s.name == name);
    let stream = stream.unwrap_or_else(|| panic!("there is no stream {name:?}"));
    let mut source = SyntheticSource::new(stream, PACKAGES * 16, accesses);
    write_round_robin(&mut source, accesses, |at| at, &mut out);
}

/// Writes up to so many accesses of a source, its threads in turn; how many.
fn write_round_robin(
    source: &mut impl AccessSource,
    most: u64,
    mut place: impl FnMut(u64) -> u64,
    out: &mut impl Write,
) -> u64 {
    let threads = source.threads().to_vec();
    let mut pieces: Vec<std::vec::IntoIter<_>> =
        threads.iter().map(|_| Vec::new().into_iter()).collect();
    let mut written = 0;
    loop {
        let before = written;
        for (thread, piece) in threads.iter().zip(&mut pieces) {
            if piece.len() == 0 {
                let mut next = Vec::new();
                source.next_piece(*thread, &mut next);
                *piece = next.into_iter();
            }
            let Some(access) = piece.next().filter(|_| written < most) else {
                continue;
            };
            let word = place(access.address) | u64::from(access.write) << 63;
            out.write_all(&word.to_le_bytes()).expect("disk space");
            written += 1;
        }
        if written == before {
            return written;
        }
    }
}

/// Processor time of this process.
fn processor_seconds() -> f64 {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a processor clock");
    now.tv_sec() as f64 + now.tv_nsec() as f64 * 1e-9
}

/// Bytes: the most memory that this process held at a time.
fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let kib = line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
