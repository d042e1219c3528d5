//! `make bench-report`: how long a page takes to make, how large it is, and how it behaves
//! in chromium, for profiles of known size with planted hot cells.
//!
//! Arguments: names of sizes to keep (`64x100k`, `1024x1M`).
#![forbid(unsafe_code)]
#[path = "../../crates/hither/tests/report/planted.rs"]
mod planted;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::{TimeVal, TimeValLike};
use planted::{Planted, HOT};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

struct BenchSize {
    name: &'static str,
    planted: Planted,
    /// Seconds to make it and bytes it may have at most; 0 seconds: no limit.
    seconds: f64,
    bytes: u64,
}

const SIZES: [BenchSize; 2] = [
    BenchSize {
        name: "64x100k",
        planted: Planted {
            threads: 64,
            pages: 100_000,
            users: 64,
            slices: 1000,
            hot: 20,
        },
        seconds: 2.0,
        bytes: 6_000_000,
    },
    BenchSize {
        name: "1024x1M",
        planted: Planted {
            threads: 1024,
            pages: 1_000_000,
            users: 8,
            slices: 1000,
            hot: 20,
        },
        seconds: 0.0,
        bytes: 25_000_000,
    },
];

const RUNS: usize = 3;

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let kept = |size: &&BenchSize| words.is_empty() || words.iter().any(|w| w == size.name);
    for size in SIZES.iter().filter(kept) {
        measure_size(size)?;
    }
    Ok(())
}

fn measure_size(size: &BenchSize) -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    let profile = dir.path().join("app.hither");
    let made = size.planted.profile();
    println!("{}: {} rows of page use", size.name, made.pages.row_count());
    hither_profile::write(&made, &profile).map_err(std::io::Error::other)?;
    drop(made);
    let page = dir.path().join("app.html");
    let mut seconds = Vec::new();
    let processor = children_cpu_seconds()?;
    for _ in 0..RUNS {
        let start = Instant::now();
        let mut report = Command::new(env!("CARGO_BIN_EXE_hither"));
        report.arg("report").arg(&profile).arg("-o").arg(&page);
        let out = report.output()?;
        seconds.push(start.elapsed().as_secs_f64());
        if !out.status.success() {
            return Err(std::io::Error::other(
                String::from_utf8_lossy(&out.stderr).into_owned(),
            ));
        }
    }
    seconds.sort_by(f64::total_cmp);
    let median = seconds[RUNS / 2];
    let bytes = std::fs::metadata(&page)?.len();
    let limit = if size.seconds > 0.0 {
        format!(" (limit {} s)", size.seconds)
    } else {
        String::new()
    };
    let processor = (self::children_cpu_seconds()? - processor) / RUNS as f64;
    println!("  made in        {median:8.2} s{limit}, {processor:.2} s of processor time");
    println!(
        "  size           {:8.2} MB (limit {} MB)",
        bytes as f64 / 1e6,
        size.bytes / 1_000_000
    );
    measure_in_browser(size, &page)
}

/// Seconds that ended children used.
fn children_cpu_seconds() -> std::io::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn measure_in_browser(size: &BenchSize, page: &Path) -> std::io::Result<()> {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report-ui");
    let limits =
        (size.seconds > 0.0).then(|| serde_json::json!({ "picture": "1.5 s", "zoom": "50 ms" }));
    let expected = serde_json::json!({
        "limits": limits,
        "cells": size.planted.cells(), "count": HOT,
        "pages": size.planted.pages, "threads": size.planted.threads,
    });
    let mut node = Command::new("node");
    node.arg(ui.join("test/speed.mjs"));
    node.env("HITHER_PAGE", page)
        .env("HITHER_EXPECTED", expected.to_string());
    let status = node.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other("the browser could not be measured"))
    }
}
