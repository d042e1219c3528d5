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
//! one thread keeps to itself stays with it.
use super::common::{format_percent, hottest_lines, structure_label};
use super::{padding, FindingContext};
use hither_profile::{
    Finding, FindingKind, FindingPicture, LineUse, Object, ObjectIx, ObjectRange, RegionIx,
    RegionKind, TrafficUnit,
};
use std::collections::BTreeMap;

/// Accesses of a thread to a line whose bytes must be known before others are said to be
/// disjoint from them. Ours: of eight words used in any order, 16 accesses leave one unseen
/// with a chance of 12 %, and a false alarm needs such a gap in each of the conflicts.
const LEAST_SEEN: u64 = 16;
/// Least share of the false conflicts in the weight of a line's conflicts. Ours: where a
/// fifth is true sharing, padding leaves the line moving nearly as often.
const MOSTLY_FALSE: f64 = 0.8;
/// Least share of the run's accesses. Ours: an access that finds its line in another cache
/// takes some hundred cycles against a few, so that 0.1 % of them are noticed.
const LEAST_SHARE: f64 = 0.001;
/// Threads of a line that are compared, most accesses first.
const MOST_THREADS: usize = 128;
/// Threads whose bytes are listed.
const MAX_LISTED_THREADS: usize = 8;
/// Structures of which several lie in one line that are named.
const NAMED: usize = 3;

/// A falsely shared line.
pub struct FalselySharedLine<'a> {
    pub region: RegionIx,
    pub offset: u64,
    /// Those with false conflicts, in order.
    pub users: Vec<&'a LineUse>,
    /// Accesses that can find the line elsewhere.
    contended: u64,
}

/// Falsely shared lines with the same structures in them.
pub struct FalseSharingSite<'a> {
    /// In order of their addresses; none where the memory has no name.
    pub ranges: Vec<&'a ObjectRange>,
    pub lines: Vec<FalselySharedLine<'a>>,
}

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

/// The falsely shared lines by what lies in them.
fn false_sharing_sites<'a>(case: &FindingContext<'a>) -> Vec<FalseSharingSite<'a>> {
    let size = u64::from(case.profile.meta.options.line).max(1);
    let mut ranges: Vec<&ObjectRange> = case.profile.object_ranges.iter().collect();
    ranges.sort_by_key(|r| (r.region, r.offset, r.object));
    let lines = &case.profile.lines;
    let same = |a: &LineUse, b: &LineUse| (a.region, a.offset) == (b.region, b.offset);
    let mut places: BTreeMap<(Vec<ObjectIx>, Option<RegionIx>), FalseSharingSite> = BTreeMap::new();
    for line in lines.chunk_by(same).filter_map(falsely_shared) {
        let inside = touched_structures(&ranges, &line, size);
        let objects: Vec<ObjectIx> = inside.iter().map(|r| r.object).collect();
        let region = objects.is_empty().then_some(line.region);
        let place = places
            .entry((objects, region))
            .or_insert_with(|| FalseSharingSite {
                ranges: inside,
                lines: Vec::new(),
            });
        place.lines.push(line);
    }
    let mut places: Vec<FalseSharingSite> = places.into_values().collect();
    for place in &mut places {
        let key = |l: &FalselySharedLine| (std::cmp::Reverse(l.contended), l.region, l.offset);
        place.lines.sort_by_key(key);
    }
    places
}

/// Is the line, of whose users these are all, falsely shared?
fn falsely_shared(uses: &[LineUse]) -> Option<FalselySharedLine<'_>> {
    let mut users: Vec<&LineUse> = uses.iter().collect();
    users.sort_by_key(|u| (std::cmp::Reverse(u.accesses), u.thread));
    users.truncate(MOST_THREADS);
    let (mut falsely, mut truly) = (0.0, 0.0);
    let mut partakes = vec![false; users.len()];
    for (i, a) in users.iter().enumerate() {
        for (j, b) in users.iter().enumerate().skip(i + 1) {
            let weight = a.accesses.min(b.accesses) as f64;
            if a.write_mask | b.write_mask == 0 {
                continue;
            }
            let common = a.write_mask & (b.read_mask | b.write_mask) | b.write_mask & a.read_mask;
            if common != 0 {
                truly += weight;
            } else if a.seen.min(b.seen) >= LEAST_SEEN {
                falsely += weight;
                partakes[i] = true;
                partakes[j] = true;
            }
        }
    }
    if falsely <= 0.0 || falsely < MOSTLY_FALSE * (falsely + truly) {
        return None;
    }
    let mut keep = partakes.into_iter();
    users.retain(|_| keep.next().unwrap_or(false));
    let accesses = users.iter().map(|u| u.accesses);
    let all = accesses.fold(0u64, u64::saturating_add);
    let others = all - users.first()?.accesses;
    users.sort_by_key(|u| (first_byte(u), u.thread));
    Some(FalselySharedLine {
        region: users[0].region,
        offset: users[0].offset,
        contended: others.saturating_mul(2).min(all),
        users,
    })
}

fn first_byte(user: &LineUse) -> u32 {
    (user.read_mask | user.write_mask).trailing_zeros()
}

/// The structures in the bytes that the line's users touch, in order of their addresses.
fn touched_structures<'a>(
    ranges: &[&'a ObjectRange],
    line: &FalselySharedLine,
    size: u64,
) -> Vec<&'a ObjectRange> {
    let (end, part) = (line.offset.saturating_add(size), (size / 64).max(1));
    let touched = (line.users.iter()).fold(0, |mask, u| mask | u.read_mask | u.write_mask);
    let after = ranges.partition_point(|r| (r.region, r.offset) < (line.region, end));
    let before = ranges[..after].iter().rev();
    let near = before
        .take_while(|r| r.region == line.region)
        .take(size as usize);
    let mut found: Vec<&ObjectRange> = near
        .filter(|r| {
            (0..64).filter(|n| touched >> n & 1 == 1).any(|n| {
                let byte = line.offset.saturating_add(n * part);
                byte >= r.offset && byte - r.offset < r.length
            })
        })
        .copied()
        .collect();
    found.reverse();
    found.dedup_by_key(|r| r.object);
    found
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

/// The name of a structure.
pub fn name_of(case: &FindingContext, object: ObjectIx) -> String {
    let structures = &case.analysis.report.structures;
    match structures.iter().find(|s| s.object == object) {
        Some(structure) => structure_label(structure),
        None => {
            let object = &case.profile.objects[object.at()];
            object.name.chars().take(60).collect()
        }
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
