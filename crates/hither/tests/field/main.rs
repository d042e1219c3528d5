//! `hither trace` on programs that are not ours, and under abuse: each runs natively and
//! traced, and must print and return the same; the profile must make sense. Needs the
//! tracer (`cargo xtask tracer`) and the example programs (`make -C workloads`).
#[path = "../common/mod.rs"]
#[allow(dead_code)] // Other tests use more of it.
mod common;
mod doctor;
mod endings;
mod environment;
mod limits;
mod mpi;
mod programs;
mod refused;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;
use std::time::Duration;

use common::{
    built_by, check_refusal, run, status, text, there, wait_for, workload, Place, Running, HITHER,
};
use hither_profile::Profile;
use nix::sys::signal::Signal;
use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/field");

impl Place {
    fn trace(&self, line: &[&str]) -> Output {
        let traced = [&[HITHER, "trace", "-q", "-o", "traced", "--"], line].concat();
        run(self.command(&traced))
    }

    fn profile(&self) -> Profile {
        self.profile_of("traced.hither")
    }

    fn profile_of(&self, name: &str) -> Profile {
        let profile = hither_profile::read(&self.path(name)).expect("a profile");
        let stat = run(self.command(&[HITHER, "stat", name]));
        assert!(stat.status.success(), "{}", text(&stat.stderr));
        assert!(text(&stat.stdout).contains("Verdict"));
        profile
    }
}

fn accesses(profile: &Profile) -> u64 {
    profile
        .threads
        .iter()
        .map(hither_profile::Thread::accesses)
        .sum()
}

/// How much a profile has to show.
struct Expected {
    processes: usize,
    threads: usize,
}

/// `line` natively and traced in `place`: same output and status, at least what is
/// `expected` in the profile.
#[track_caller]
fn check_in(place: &Place, line: &[&str], expected: &Expected) -> Profile {
    let native = run(place.command(line));
    let traced = place.trace(line);
    assert_eq!(text(&native.stderr), text(&traced.stderr), "{line:?}");
    assert!(
        native.stdout == traced.stdout,
        "{line:?}: {} is not {}",
        text(&traced.stdout),
        text(&native.stdout)
    );
    assert_eq!(status(&native), status(&traced), "{line:?}");
    let profile = place.profile();
    assert!(
        profile.threads.len() >= expected.threads,
        "{line:?}: {} threads",
        profile.threads.len()
    );
    assert!(
        profile.meta.processes.len() >= expected.processes,
        "{line:?}: {} processes",
        profile.meta.processes.len()
    );
    assert!(
        accesses(&profile) > 1000,
        "{line:?}: {} accesses",
        accesses(&profile)
    );
    profile
}

#[track_caller]
fn check(line: &[&str], processes: usize, threads: usize) -> Profile {
    check_in(&Place::new(), line, &Expected { processes, threads })
}

/// What takes longer has failed.
const LIMITED: [&str; 7] = ["timeout", "-s", "KILL", "20", HITHER, "trace", "-q"];

/// A program built from a file of this folder, once per run of the tests.
fn built(name: &str) -> String {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let script = format!(
            "set -e; gcc -std=gnu11 -O1 -g -pthread -o abuse {SOURCES}/abuse.c
             gcc -static -std=gnu11 -O1 -g -pthread -o abuse-static {SOURCES}/abuse.c
             g++ -std=c++17 -O1 -g -pthread -o throws {SOURCES}/throws.cpp -ldl
             gcc -std=gnu11 -O1 -g -pthread -o filters {SOURCES}/filters.c
             gcc -std=gnu11 -O1 -g -pthread -o creation {SOURCES}/creation.c
             gcc -std=gnu11 -O1 -g -pthread -o mappings {SOURCES}/mappings.c
             gcc -std=gnu11 -O1 -g -pthread -o interrupted {SOURCES}/interrupted.c
             gcc -std=gnu11 -O1 -g -pthread -o sigwait {SOURCES}/sigwait.c
             gcc -std=gnu11 -O1 -g -pthread -o short_lived {SOURCES}/short_lived.c
             gcc -std=gnu11 -O1 -g -pthread -o unblocks {SOURCES}/unblocks.c
             gcc -std=gnu11 -O1 -g -o jit {SOURCES}/jit.c
             gcc -std=gnu11 -O1 -g -o code_heap {SOURCES}/code_heap.c
             gcc -std=gnu11 -O1 -g -o traps {SOURCES}/traps.c
             gcc -std=gnu11 -O1 -g -o alarmed {SOURCES}/alarmed.c
             gcc -std=gnu11 -O1 -g -o timers {SOURCES}/timers.c
             gcc -std=gnu11 -O1 -g -pthread -o suspend {SOURCES}/suspend.c
             gcc -DLIBRARY -shared -fPIC -Wl,--section-start=.gnu.hash=0x400000 -Wl,-Tdata=0x500000 \
                 -o libtables.so {SOURCES}/tables.c
             gcc -o tables {SOURCES}/tables.c -L. -ltables -Wl,-rpath,$PWD
             gcc -DLIBRARY -shared -fPIC -o libraries1.so {SOURCES}/libraries.c
             for i in 2 3 4 5 6 7 8; do cp libraries1.so libraries$i.so; done
             gcc -O1 -g -o libraries {SOURCES}/libraries.c -ldl
             gcc -DLIBRARY -O1 -shared -fPIC -o locals0.so {SOURCES}/locals.c
             for i in $(seq 1 131); do cp locals0.so locals$i.so; done
             gcc -O1 -g -rdynamic -pthread -o locals {SOURCES}/locals.c
             gcc -DALLOCATOR -DPREFIX=scalable_ -shared -fPIC -s -o libscalable.so {SOURCES}/allocator.c
             gcc -O1 -g -DPREFIX=scalable_ -o exported {SOURCES}/allocator.c -L. -lscalable -Wl,-rpath,$PWD
             gcc -O1 -DALLOCATOR -DPREFIX=_own_je_ -c -o own.o {SOURCES}/allocator.c
             gcc -O1 -g -DPREFIX=_own_je_ -o linked {SOURCES}/allocator.c own.o
             gcc -O1 -DALLOCATOR -c -o rest.o {SOURCES}/inlined_allocator.c
             gcc -O1 -g -o inlined {SOURCES}/inlined_allocator.c rest.o
             gcc -std=gnu11 -O1 -g -o reserved {SOURCES}/reserved.c
             gcc -std=gnu11 -O1 -g -o callers {SOURCES}/callers.c
             gcc -std=gnu11 -O1 -g -o sites {SOURCES}/sites.c
             objcopy --dump-section .eh_frame=frames callers
             tr '\\100-\\377' '\\300-\\377\\100-\\277' < frames > noise
             objcopy --update-section .eh_frame=noise callers callers-noise
             tr '\\200-\\377' '\\201-\\377\\200' < frames > noise
             objcopy --update-section .eh_frame=noise callers callers-wrong
             gcc -DLIBRARY -shared -fPIC -o libjli.so {SOURCES}/launcher.c
             gcc -o launcher {SOURCES}/launcher.c -L. -ljli -Wl,-rpath,$PWD; chmod 755 ."
        );
        built_by(&script)
    });
    folder.path().join(name).to_string_lossy().into_owned()
}
