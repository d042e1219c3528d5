//! What the bursts of a profile hold, thread by thread, and how fast they are decoded:
//! `cargo run --release -p hither-profile --example bursts -- app.hither`
use hither_profile::bursts::{BurstAccess, BurstTrace};
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("a profile"));
    let profile = hither_profile::read(&folder).expect("a profile");
    let bursts = BurstTrace::open(&folder).expect("bursts").expect("bursts");
    if let Some(broken) = bursts.broken() {
        println!("{broken}");
    }
    let (mut all, mut unnamed) = (0u64, 0u64);
    let mut into: Vec<BurstAccess> = Vec::new();
    let mut seconds = 0.0;
    println!("window thread   pieces  instructions       reads      writes  depend  counted instructions, reads, writes");
    for window in 0..bursts.windows().len() {
        for thread in bursts.threads(window) {
            let mut decoder = bursts.decoder(window, thread);
            let (mut pieces, mut instructions, mut sums, mut depend) = (0, 0, [0u64; 2], 0u64);
            loop {
                let start = Instant::now();
                let piece = decoder.next(&mut into);
                seconds += start.elapsed().as_secs_f64();
                let Some(piece) = piece else { break };
                pieces += 1;
                instructions += piece.instructions;
                all += piece.accesses;
                for a in &into {
                    sums[usize::from(a.write)] += 1;
                    depend += u64::from(a.depends > 0);
                    let named = bursts.page_name(window, piece.process, a.address >> 12);
                    unnamed += u64::from(named.is_none());
                    if named.is_none() && std::env::var_os("DBG").is_some() {
                        println!("{a:x?}");
                    }
                }
            }
            let [reads, writes] = sums;
            let t = &profile.threads[thread.at()];
            let damaged = if decoder.damaged() { "DAMAGED" } else { "" };
            println!(
                "{window:6} {thread:>6} {pieces:8} {instructions:13} {reads:11} {writes:11} {depend:7}  {} {} {} {damaged}",
                t.instructions, t.reads, t.writes
            );
        }
    }
    let bytes = profile.meta.bursts.map_or(0, |b| b.bytes);
    println!(
        "{all} accesses, {unnamed} without a name; {:.3} bytes an access; {:.0} M accesses/s",
        bytes as f64 / all as f64,
        all as f64 / seconds / 1e6
    );
}
