//! Prints which threads share most with each other:
//!
//! ```text
//! cargo run --package hither-profile --example sharing -- app.hither
//! ```
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("give a profile that `hither trace` wrote")?;
    let profile = hither_profile::read(&folder)?;
    let matrix = profile.matrix();
    let pairs = matrix.pairs();
    let mut pairs: Vec<_> = pairs.map(|(i, j, events)| (events, i, j)).collect();
    pairs.sort_unstable_by(|a, b| b.cmp(a));
    for (events, i, j) in pairs.into_iter().take(20) {
        // Names come from the traced program: control characters would steer the terminal.
        let name =
            |at: u32| hither_profile::strip_control_characters(&profile.threads[at as usize].name);
        println!("{events:>12} events  {i} {} <-> {j} {}", name(i), name(j));
    }
    Ok(())
}
