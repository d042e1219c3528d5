//! `cargo xtask guest -- 'numactl -H'`: commands on the NUMA test machine, by hand.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::Parser;
use hither_guest::{CommandOutput, DebianKernel, Guest};

/// Boot a NUMA machine in QEMU and run a command on it.
///
/// The machine has busybox; programs that the command names are copied along with their
/// libraries. What the command prints and its exit status come back; the status is 125 if
/// the machine did not get so far, and 2 if there can be no such machine.
#[derive(Parser)]
#[command(name = "cargo xtask guest", bin_name = "cargo xtask guest")]
struct Args {
    /// A shell command line, or a program and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "prepare")]
    command: Vec<String>,
    /// Nodes that have processors
    #[arg(long, default_value_t = 4)]
    nodes: usize,
    /// Processing units in all
    #[arg(long, default_value_t = 8)]
    cpus: usize,
    /// Sockets in all [default: as many as nodes]
    #[arg(long)]
    sockets: Option<usize>,
    /// Dies per socket, each with its own L3
    #[arg(long, default_value_t = 1)]
    dies: usize,
    /// Hardware threads per core
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Rows of node distances: 10,21/21,10 [default: 10, 21 to neighbours, 31 ...]
    #[arg(long, value_parser = distances)]
    distances: Option<NodeDistances>,
    /// One more node, with memory and without processors
    #[arg(long)]
    memory_only_node: bool,
    /// MiB per node
    #[arg(long, default_value_t = 512)]
    memory: usize,
    #[arg(long, default_value = "6.12", value_parser = ["6.12", "6.1"])]
    kernel: String,
    /// More kernel arguments, such as numa_balancing=disable
    #[arg(long, default_value = "", hide_default_value = true)]
    append: String,
    /// Time in the machine goes by what it computes, 4 ns an instruction, not by the wall clock;
    /// while it waits, time leaps to what it waits for
    #[arg(long)]
    own_clock: bool,
    /// Copy a file or folder, with the libraries of its programs
    #[arg(long = "file", value_name = "HOST[:GUEST]")]
    files: Vec<String>,
    /// Give the command files in the guest's /out back in this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Seconds until the machine is killed
    #[arg(long, default_value_t = 300)]
    timeout: u64,
    /// Only download what the machine needs, unless it is there
    #[arg(long)]
    prepare: bool,
}

#[derive(Clone)]
struct NodeDistances(Vec<Vec<u8>>);

fn distances(text: &str) -> Result<NodeDistances, std::num::ParseIntError> {
    let row = |row: &str| row.split(',').map(|d| d.trim().parse()).collect();
    Ok(NodeDistances(
        text.split('/').map(row).collect::<Result<_, _>>()?,
    ))
}

pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let name = "guest".to_string();
    let args = match Args::try_parse_from([&name].into_iter().chain(arguments)) {
        Ok(args) => args,
        Err(e) => {
            e.print()?;
            return Ok(ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2)));
        }
    };
    if args.prepare {
        return prepare();
    }
    let output = match build_guest(&args)?.run(&shell_command(&args.command)) {
        Ok(output) => output,
        Err(e) => {
            eprintln!("xtask: {e}");
            let bad_option = matches!(e, hither_guest::GuestError::Shape(_));
            return Ok(ExitCode::from(if bad_option { 2 } else { 125 }));
        }
    };
    if let Some(folder) = &args.out {
        save_files(&output, folder)?;
    }
    Ok(ExitCode::from(u8::try_from(output.status).unwrap_or(1)))
}

/// Tests that need the machine skip themselves by name where it cannot be had, so that
/// is no failure here unless it is one there.
fn prepare() -> Result<ExitCode> {
    for kernel in [DebianKernel::V6_12, DebianKernel::V6_1] {
        let first = hither_guest::prepare(kernel);
        let Err(why) = first.or_else(|_| {
            // apt's lists may be old or gone. Only root can renew them: for others this
            // fails and changes nothing.
            let _ = Command::new("apt-get").args(["update", "-qq"]).output();
            hither_guest::prepare(kernel)
        }) else {
            continue;
        };
        if hither_guest::required() {
            bail!("{why}");
        }
        let kernel = kernel.name();
        eprintln!("tests on the NUMA machine with kernel {kernel} will be skipped: {why}");
    }
    Ok(ExitCode::SUCCESS)
}

fn build_guest(args: &Args) -> Result<Guest> {
    let here = std::env::current_dir().context("cannot find the current folder")?;
    let kernel = if args.kernel == "6.1" {
        DebianKernel::V6_1
    } else {
        DebianKernel::V6_12
    };
    let mut guest = Guest::new()
        .nodes(args.nodes)
        .cpus(args.cpus)
        .dies(args.dies)
        .threads(args.threads)
        .memory(args.memory)
        .kernel(kernel)
        .kernel_arguments(&args.append)
        .timeout(Duration::from_secs(args.timeout))
        .folder(&here)
        .live();
    if let Some(sockets) = args.sockets {
        guest = guest.sockets(sockets);
    }
    if let Some(NodeDistances(rows)) = &args.distances {
        guest = guest.distances(rows);
    }
    if args.memory_only_node {
        guest = guest.memory_only_node();
    }
    if args.own_clock {
        guest = guest.own_clock();
    }
    for file in &args.files {
        let (host, place) = file.split_once(':').unwrap_or((file, file));
        guest = guest.file_at(here.join(host), here.join(place));
    }
    Ok(guest)
}

/// One argument is a line for the shell; of several, each is a word.
fn shell_command(words: &[String]) -> String {
    if let [line] = words {
        return line.clone();
    }
    let quoted = words
        .iter()
        .map(|w| format!("'{}'", w.replace('\'', r"'\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

fn save_files(output: &CommandOutput, folder: &Path) -> Result<()> {
    for (name, data) in &output.files {
        let name = Path::new(name);
        let inside = name
            .components()
            .all(|c| matches!(c, std::path::Component::Normal(_)));
        if !inside {
            bail!("the guest sent a file with the name {}", name.display());
        }
        let file = folder.join(name);
        let parent = file.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&file, data))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_argument_is_a_line_and_several_are_words() {
        let check = |words: &[&str], expected: &str| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert_eq!(shell_command(&words), expected);
        };
        check(&["a b; c"], "a b; c");
        check(&["a", "b c", "it's"], r"'a' 'b c' 'it'\''s'");
    }

    #[test]
    fn distances_are_rows_of_numbers() {
        assert_eq!(distances("10,21/ 21,10").unwrap().0, [[10, 21], [21, 10]]);
        assert!(distances("10,x").is_err());
        assert!(distances("10,300").is_err());
    }
}
