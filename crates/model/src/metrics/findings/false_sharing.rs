//! False sharing: lines in which several threads touch different bytes, one of them writing.
//! A write takes the line from the caches of all others, though none of them needs what was
//! written.
//!
//! Evidence is the table `lines`: which bytes each thread was seen to touch, and an estimate
//! of its accesses to the line while others used it too. Two threads conflict in a line if
//! one of them writes it. The conflict is a true one where what one writes the other reads or
//! writes as well, a false one where they were looked at often enough and never did. It weighs
//! as much as the one of the two with fewer accesses: it alternates no more often.
//!
//! The severity is the share of the run's accesses that can find such a line in another cache:
//! in each line at most twice as many as all threads but the busiest make, since a line that
//! one thread keeps to itself stays with it; and at most one of each thread for each write, since
//! a line that all only read stays with all.
use super::common::{format_percent, hottest_lines, name_of};
use super::falsely_shared::{false_sharing_sites, FalseSharingSite, FalselySharedLine};
use super::{padding, FindingContext};
use hither_profile::{
    Finding, FindingKind, FindingPicture, Object, ObjectRange, RegionIx, RegionKind, TrafficUnit,
};

/// Least share of the run's accesses. Ours: an access that finds its line in another cache
/// takes some hundred cycles against a few, so that 0.1 % of them are noticed.
const LEAST_SHARE: f64 = 0.001;
/// Threads whose bytes are listed.
const MAX_LISTED_THREADS: usize = 8;
/// Structures of which several lie in one line that are named.
const NAMED: usize = 3;

pub fn find(case: &FindingContext) -> Vec<Finding> {
    let threads = case.profile.threads.iter();
    let accesses = threads.map(|t| t.reads.saturating_add(t.writes));
    let total = accesses.fold(0u64, u64::saturating_add).max(1) as f64;
    let places = false_sharing_sites(case);
    // What a library keeps for itself nobody can lay out in another way.
    let kept = |r: &&ObjectRange| {
        let name = &case.profile.objects[r.object.at()].name;
        name.starts_with(Object::BLOCKS_OF)
    };
    let ours = |place: &FalseSharingSite| place.ranges.is_empty() || !place.ranges.iter().all(kept);
    let findings = places.into_iter().filter(ours).filter_map(|place| {
        let contended = place.lines.iter().map(|l| l.contended as f64).sum::<f64>();
        let severity = (contended / total).min(1.0);
        (severity >= LEAST_SHARE).then(|| finding(case, &place, severity))
    });
    findings.collect()
}

fn finding(case: &FindingContext, place: &FalseSharingSite, severity: f64) -> Finding {
    // Of several, the one that most accesses are known of: it has a picture and source lines.
    let most = |r: &&&ObjectRange| {
        let object = &case.profile.objects[r.object.at()];
        (
            object.reads.saturating_add(object.writes),
            std::cmp::Reverse(r.object),
        )
    };
    let object = place.ranges.iter().max_by_key(most).map(|r| r.object);
    let what = site_name(case, place);
    let (count, worst) = (place.lines.len(), &place.lines[0]);
    let size = case.profile.meta.options.line;
    let mut threads: Vec<u32> = (place.lines.iter())
        .flat_map(|l| l.users.iter().map(|u| u.thread.0))
        .collect();
    threads.sort_unstable();
    threads.dedup();
    let lines = if count == 1 { "line" } else { "lines" };
    let title = if place.ranges.len() > 1 {
        format!("{what} lie in the same {lines} and belong to different threads")
    } else {
        format!("Threads use different bytes of the same {lines} of {what}")
    };
    Finding {
        kind: FindingKind::FalseSharing,
        severity,
        severity_of: TrafficUnit::Accesses,
        title,
        evidence: vec![
            format!(
                "{count} {lines} of {size} bytes, {} threads: in each line they touch different \
                 bytes, and a write of one takes the line from the others.",
                threads.len()
            ),
            format!(
                "Up to {} of the run's accesses can find their line in another processor's cache.",
                format_percent(severity)
            ),
            describe_line(case, place, worst),
        ],
        object,
        lines: object.map_or_else(Vec::new, |o| hottest_lines(case, o)),
        fixes: padding::padding_fixes(case, place, &what),
        picture: object.map_or(FindingPicture::Communication, |object| {
            FindingPicture::Structure { object }
        }),
    }
}

/// Which bytes of a line belong to whom.
fn describe_line(
    case: &FindingContext,
    place: &FalseSharingSite,
    line: &FalselySharedLine,
) -> String {
    let part = (u64::from(case.profile.meta.options.line) / 64).max(1);
    let told = line.users.iter().take(MAX_LISTED_THREADS).map(|u| {
        let mask = u.read_mask | u.write_mask;
        let member = padding::members_of(case, place, line, mask);
        let member = member.first().map_or(String::new(), |m| format!(" ({m})"));
        let only = if u.write_mask == 0 { " reads" } else { "" };
        format!(
            "{} thread {}{only}{member}",
            format_byte_ranges(mask, part),
            u.thread.0
        )
    });
    let told = told.collect::<Vec<String>>().join(", ");
    let more = match line.users.len().saturating_sub(MAX_LISTED_THREADS) {
        0 => String::new(),
        more => format!(", and {more} more threads"),
    };
    let at = match place.ranges.as_slice() {
        [range] if line.offset >= range.offset => {
            format!(
                " (byte {} of {})",
                line.offset - range.offset,
                site_name(case, place)
            )
        }
        _ => String::new(),
    };
    format!("The line with most of them{at}: bytes {told}{more}.")
}

/// The bytes of a mask as people read them: `0-7`, `0-3 and 8-11`.
fn format_byte_ranges(mask: u64, part: u64) -> String {
    let mut runs = Vec::new();
    let mut from = 0;
    while from < 64 && mask >> from != 0 {
        let first = from + u64::from((mask >> from).trailing_zeros());
        let length = u64::from((mask >> first).trailing_ones());
        let (low, high) = (first * part, (first + length) * part - 1);
        runs.push(if low == high {
            format!("{low}")
        } else {
            format!("{low}-{high}")
        });
        from = first + length;
    }
    runs.join(" and ")
}

/// The structures, or what the memory is where it has no name.
fn site_name(case: &FindingContext, place: &FalseSharingSite) -> String {
    let names = place.ranges.iter().take(NAMED);
    let names: Vec<String> = names.map(|r| name_of(case, r.object)).collect();
    match names.as_slice() {
        [] => region_name(case, place.lines[0].region),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn region_name(case: &FindingContext, region: RegionIx) -> String {
    let region = &case.profile.regions[region.at()];
    let of = |thread: Option<hither_profile::ThreadIx>| match thread {
        Some(thread) => format!(" of thread {}", thread.0),
        None => String::new(),
    };
    match region.kind {
        RegionKind::Brk => "the heap (in no block that is known)".to_owned(),
        RegionKind::Stack => format!("the stack{}", of(region.thread)),
        RegionKind::Elf => format!("the unnamed data of {}", region.file),
        RegionKind::Shared => format!("the shared memory {}", region.file),
        RegionKind::Mmap => format!("a mapping{}", of(region.thread)),
        RegionKind::Other => "memory of unknown use".to_owned(),
    }
}
