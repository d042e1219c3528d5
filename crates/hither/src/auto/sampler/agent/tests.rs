//! The agent in a program that checks every byte of its memory, at rates that no budget
//! would allow. Needs what the sampler needs; where that is not given, each test says so.
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use std::os::fd::AsFd;

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use super::connection;
use crate::auto::address_spaces::AddressSpaces;
use crate::auto::sampler::move_host;
use crate::auto::sampler::write_protect;
use crate::auto::sampler::{FaultSampler, MemoryKind, SamplerContext};
use crate::auto::taken_pages::TakenPages;
use crate::auto::thread_table::ThreadTable;
use crate::follow::procfs;
use hither_sys::{Cpu, Pid};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/safety.c");

/// A folder with the program in it; `None` where there can be no agent.
fn folder() -> Option<tempfile::TempDir> {
    if let Err(reason) = connection::is_possible() {
        println!("skipped: {reason}");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut gcc = Command::new("gcc");
    let built = gcc.args(["-O1", "-pthread", "-o"]);
    let built = built.arg(folder.path().join("safety")).arg(SOURCE);
    assert!(built.status().expect("gcc").success());
    Some(folder)
}

fn start(folder: &Path, seconds: &str, letters: &str) -> Child {
    let mut program = Command::new(folder.join("safety"));
    program.args([seconds, "."]).arg(letters);
    program.current_dir(folder);
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().expect("safety")
}

/// Samples a program until it ends, `rate` pages every 2 ms. Returns how many were taken.
fn torment(program: &mut Child, sampler: &mut dyn FaultSampler, rate: u32) -> u64 {
    let pid = Pid::try_from(program.id()).expect("pid");
    let memory = AddressSpaces::default();
    let began = Instant::now();
    // Not by waitpid: that would consume the stops that the injector waits for.
    let end = hither_sys::process::pidfd(nix::unistd::Pid::from_raw(pid)).expect("pidfd");
    let has_ended = || {
        let mut ready = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::ZERO).expect("poll") > 0
    };
    while !has_ended() {
        assert!(began.elapsed() < Duration::from_secs(60), "it hangs");
        let mut table = ThreadTable::default();
        table.read_clock();
        for tid in procfs::thread_ids(pid) {
            table.find_or_add(tid, pid, Cpu(0));
        }
        let view = SamplerContext {
            picks: &[],
            address_spaces: &memory,
            threads: &table,
            extra: 0,
        };
        sampler
            .take_pages(rate, &view, &mut TakenPages::new(false))
            .expect("take");
        std::thread::sleep(Duration::from_millis(2));
    }
    println!("{} taken; {:?}", sampler.pages_taken(), sampler.note());
    sampler.pages_taken()
}

fn check(letters: &str, least: u64) {
    if let Some(folder) = folder() {
        let mut mover = move_host::sampler().expect("a sampler");
        check_with(&mut mover, folder.path(), letters, least);
    }
}

/// On a machine that is busy with other things few pages may be taken of a run.
const RUNS: usize = 5;

fn check_with(sampler: &mut dyn FaultSampler, folder: &Path, letters: &str, least: u64) {
    for _ in 0..RUNS {
        let mut program = start(folder, "4", letters);
        let taken = torment(&mut program, sampler, 100);
        let output = program.wait_with_output().expect("output");
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        println!("{out}{err}{}", output.status);
        assert!(output.status.success() && out.ends_with("0 wrong\n"));
        if taken >= least {
            return;
        }
    }
    panic!("{} pages taken in {RUNS} runs", sampler.pages_taken());
}

#[test]
fn atomics_lose_no_count() {
    check("aaaa", 2000);
}

#[test]
fn reads_and_writes_find_what_was_written() {
    check("rrrr", 2000);
}

#[test]
fn system_calls_wait_for_pages() {
    check("ppff", 2000);
}

#[test]
fn children_have_what_their_parents_had() {
    check("kkxr", 1000);
}

#[test]
fn memory_that_is_mapped_anew_is_empty() {
    check("mmmr", 500);
}

#[test]
fn memory_that_is_moved_keeps_what_it_holds() {
    check("vvvr", 500);
}

/// Part of a mapping is not to be a mapping of its own, on which calls fail.
#[test]
fn memory_that_grows_goes_on_growing() {
    check("gggr", 500);
}

#[test]
fn memory_that_is_given_up_is_empty() {
    check("dddr", 500);
}

#[test]
fn rights_and_locks_change_nothing() {
    check("lllr", 500);
}

#[test]
fn huge_pages_keep_what_they_hold() {
    check("hhr", 500);
}

#[test]
fn threads_end_as_they_would() {
    check("ttsr", 500);
}

#[test]
fn locks_of_threads_that_died_are_told() {
    check("uutr", 0);
}

#[test]
fn all_at_once() {
    check("aarrpfkxmvdlhtsr", 500);
}

#[test]
fn all_at_once_with_pages_protected() {
    let kinds = [MemoryKind::Private, MemoryKind::Shared];
    match (write_protect::sampler(&kinds, false), folder()) {
        (Ok(mut sampler), Some(folder)) => {
            check_with(&mut sampler, folder.path(), "aarrpfkxmvdlhtsr", 500);
        }
        (sampler, _) => println!("skipped: {:?}", sampler.err()),
    }
}
