//! Many threads, many runs.
use super::*;
use hither_profile::{Object, ObjectKind, Thread, ThreadIx};

fn many(line: &[&str]) -> (Profile, Output) {
    let place = Place::new();
    let program = workload("many_threads");
    let traced = place.trace(&[&[program.as_str()], line].concat());
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    (place.profile(), traced)
}

#[test]
fn a_thousand_threads_at_once() {
    let (profile, _) = many(&["at-once", "1024"]);
    assert_eq!(profile.threads.len(), 1025);
    assert!(profile.threads.iter().skip(1).all(|t| t.accesses() >= 1024));
}

#[test]
fn thousands_of_threads_in_a_run() {
    let (profile, _) = many(&["in-sequence", "4096"]);
    assert_eq!(profile.threads.len(), 4097);
    assert!(profile.threads.iter().skip(1).all(|t| t.accesses() >= 1024));
}

/// Of which the kernel allows a process 65,530: with eighteen for each, as many as DynamoRIO makes by itself, four
/// thousand threads were too many.
#[test]
fn a_thread_takes_few_mappings_of_memory() {
    let place = Place::new();
    let traced = place.trace(&[&built("mappings"), "300"]);
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let mappings: u32 = text(&traced.stdout).trim().parse().expect("a number");
    assert!(mappings < 10 * 300, "{mappings}");
}

fn assert_none_lost(profile: &Profile) {
    let lost = |limit: &&String| limit.contains("were not traced");
    assert_eq!(profile.meta.limits.iter().find(lost), None);
}

/// The slots of threads that have ended are used again.
#[test]
fn threads_in_turn_have_no_limit() {
    let place = Place::new();
    let program = workload("many_threads");
    let script = format!("{program} in-sequence 4000 && {program} in-sequence 800");
    let traced = place.trace(&["sh", "-c", &script]);
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let profile = place.profile();
    let worked = |t: &&Thread| t.creator.is_some() && t.accesses() >= 1024;
    assert_eq!(profile.threads.iter().filter(worked).count(), 4800);
    assert_none_lost(&profile);
}

#[test]
fn processes_in_turn_have_no_limit() {
    let profile = created("forks", "6000");
    assert_eq!(profile.meta.processes.len(), 6001);
    // Slots of ended threads are freed once all 4351 have been in use.
    let rows = profile.threads.len();
    assert!((512..5000).contains(&rows), "{rows}");
    let said = |limit: &String| limit.contains("threads are in");
    assert!(profile.meta.limits.iter().any(said));
    let work = profile.objects.iter().filter(|o| o.name == "work");
    assert_eq!(work.map(|o| o.writes).sum::<u64>(), 6000 * 1000);
    assert_none_lost(&profile);
}

/// The block of 100,000 words that `main` writes has its counts, and nothing is said to have none.
#[track_caller]
fn assert_block_is_counted(profile: &Profile) {
    assert_block_is_written(profile);
    let full = |limit: &&String| limit.contains("more data structures");
    assert_eq!(profile.meta.limits.iter().find(full), None);
}

#[track_caller]
fn assert_block_is_written(profile: &Profile) {
    let block =
        |o: &&Object| o.kind == ObjectKind::Heap && o.function == "main" && o.size == 800_000;
    let writes = profile.objects.iter().filter(block).map(|o| o.writes);
    assert_eq!(writes.sum::<u64>(), 100_000);
}

/// Variables of many libraries, more than structures are told apart, leave room for what is allocated.
#[test]
fn libraries_leave_room_for_blocks() {
    let libraries: Vec<String> = (1..=8)
        .map(|n| built(&format!("libraries{n}.so")))
        .collect();
    let program = built("libraries");
    let line = [&program].into_iter().chain(&libraries);
    let profile = check(&line.map(String::as_str).collect::<Vec<_>>(), 1, 1);
    assert_block_is_counted(&profile);
    let own = profile.objects.iter().find(|o| o.name == "of_the_program");
    assert_eq!(own.map(|o| o.writes), Some(100_000));
}

/// What threads write to their copies of thread-local variables, by names.
fn thread_local_writes(profile: &Profile, is_meant: impl Fn(&str) -> bool) -> u64 {
    let objects = profile
        .objects
        .iter()
        .filter(|o| o.kind == ObjectKind::ThreadLocal && is_meant(&o.name));
    objects.map(|o| o.writes).sum()
}

/// Variables of 800 to 2872 bytes: the largest 256 of 260 are told apart. What a thread's creator and the linker write
/// comes on top.
#[test]
fn the_largest_thread_local_variables_of_a_file_are_told_apart() {
    let place = Place::new();
    let traced = place.trace(&[&built("locals")]);
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let profile = place.profile();
    let others = thread_local_writes(&profile, |name| name == "thread-local data of locals");
    assert!(
        (2 * 4 * 1000..2 * 4 * 1000 + 500).contains(&others),
        "{others}"
    );
    assert!(thread_local_writes(&profile, |name| name == "v359") >= 2 * 1000);
    assert_eq!(thread_local_writes(&profile, |name| name == "v100"), 0);
}

/// Of 132 libraries with thread-local variables, and the program and the C library.
#[test]
fn thread_local_variables_of_many_files_are_told_apart() {
    let libraries: Vec<String> = (0..132).map(|n| built(&format!("locals{n}.so"))).collect();
    let place = Place::new();
    let preload = format!("LD_PRELOAD={}", libraries.join(":"));
    let traced = place.trace(&["env", &preload, &built("locals")]);
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let profile = place.profile();
    let written = thread_local_writes(&profile, |name| name == "of_a_library");
    // Two of them share 16 bytes, which count for one. The last two are not told apart.
    assert!(
        (2 * 1000 * 126..=2 * 1000 * 130).contains(&written),
        "{written}"
    );
    assert!(thread_local_writes(&profile, |name| name == "v359") >= 2 * 1000);
}

#[test]
fn allocations_with_many_callers_leave_room_for_blocks() {
    assert_block_is_counted(&check(&[&built("callers")], 1, 1));
}

/// PyTorch allocates at more places than structures are told apart before it makes the first tensor: the last ids are
/// for large blocks.
#[test]
fn allocations_at_many_places_leave_room_for_large_blocks() {
    let profile = check(&[&built("sites")], 1, 1);
    assert_block_is_written(&profile);
    let full = |limit: &String| limit.contains("more data structures");
    assert!(profile.meta.limits.iter().any(full));
}

/// The tables by which callers are found are nothing that the program needs, and may say anything.
#[test]
fn damaged_unwind_tables_do_no_harm() {
    for program in ["callers-noise", "callers-wrong"] {
        assert_block_is_counted(&check(&[&built(program)], 1, 1));
    }
}

/// A child that cannot be traced any more leaves the windows of its parent.
#[test]
fn children_beyond_the_limit_run_unrecorded() {
    let place = Place::new();
    let program = workload("many_threads");
    let script = format!(
        "{program} in-sequence 4000 && {program} in-sequence 800
         (i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo counted)"
    );
    let line = [HITHER, "trace", "-q", "--full", "-o", "traced", "--"];
    let line = [&line[..], &["sh", "-c", &script]].concat();
    let traced = run(place.command(&line));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    assert!(text(&traced.stdout).ends_with("counted\n"));
}

/// `HITHER_SOAK` runs in a row; 20 without it.
#[test]
fn many_runs_in_a_row() {
    let runs = std::env::var("HITHER_SOAK").map_or(20, |n| n.parse().expect("a number"));
    for run in 0..runs {
        let (profile, output) = many(&["at-once", "64"]);
        assert_eq!(profile.threads.len(), 65, "run {run}");
        assert_eq!(text(&output.stdout), "many_threads: 64 threads, correct\n");
    }
}

fn created(case: &str, threads: &str) -> Profile {
    created_with(&[], case, threads)
}

fn created_with(options: &[&str], case: &str, threads: &str) -> Profile {
    let place = Place::new();
    let program = built("creation");
    let line = [HITHER, "trace", "-q", "-o", "traced"];
    let line = [&line[..], options, &["--", &program, case, threads]].concat();
    let traced = run(place.command(&line));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    assert_eq!(text(&traced.stdout), format!("{threads} ran\n"));
    place.profile()
}

/// New threads start late on a busy machine: more than 256 wait for their start at once.
#[test]
fn threads_that_are_created_faster_than_they_start() {
    let profile = created("crowd", "600");
    assert_eq!(profile.threads.len(), 601);
    assert!(profile.meta.limits.iter().all(|l| !l.contains("threads")));
    let started = |t: &Thread| t.tid != 0 && t.creator == Some(ThreadIx(0));
    assert!(profile.threads.iter().skip(1).all(started));
}

/// Docker's filter answers clone3 so, and libc then tries clone.
#[test]
fn threads_where_clone3_is_not_implemented() {
    let profile = created("without-clone3", "4");
    assert_eq!(profile.meta.processes.len(), 2);
    assert_eq!(profile.threads.len(), 6);
}

#[test]
fn threads_that_cannot_be_created_are_none() {
    assert_eq!(created("refused", "0").threads.len(), 1);
    assert_eq!(created("raw", "6").threads.len(), 7);
}

/// A recording knows threads by their slots, so that these are not used again.
#[test]
fn threads_beyond_the_limit_are_lost_once() {
    let profile = created_with(&["--full"], "in-turn", "4500");
    assert_eq!(profile.threads.len(), 4351);
    let lost = "150 threads were not traced: 4351 others";
    assert!(
        profile.meta.limits.iter().any(|l| l.contains(lost)),
        "{:?}",
        profile.meta.limits
    );
}
