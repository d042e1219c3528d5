//! The lines of a profile that are falsely shared, by the structures in them.
use super::FindingContext;
use hither_profile::{LineUse, ObjectIx, ObjectKind, ObjectRange, RegionIx};
use std::collections::BTreeMap;

/// Accesses of a thread to a line whose bytes must be known before others are said to be
/// disjoint from them. Ours: of eight words used in any order, 16 accesses leave one unseen
/// with a chance of 12 %, and a false alarm needs such a gap in each of the conflicts.
const LEAST_SEEN: u64 = 16;
/// Least share of the false conflicts in the weight of a line's conflicts. Ours: where a
/// fifth is true sharing, padding leaves the line moving nearly as often.
const MOSTLY_FALSE: f64 = 0.8;
/// Threads of a line that are compared, most accesses first.
const MOST_THREADS: usize = 128;
/// A falsely shared line.
pub struct FalselySharedLine<'a> {
    pub region: RegionIx,
    pub offset: u64,
    /// Those with false conflicts, in order.
    pub users: Vec<&'a LineUse>,
    /// Accesses that can find the line elsewhere.
    pub contended: u64,
}

/// Falsely shared lines with the same structures in them.
pub struct FalseSharingSite<'a> {
    /// In order of their addresses; none where the memory has no name.
    pub ranges: Vec<&'a ObjectRange>,
    pub lines: Vec<FalselySharedLine<'a>>,
}

/// The falsely shared lines by what lies in them.
pub fn false_sharing_sites<'a>(case: &FindingContext<'a>) -> Vec<FalseSharingSite<'a>> {
    let size = u64::from(case.profile.meta.options.line).max(1);
    let mut ranges: Vec<&ObjectRange> = case.profile.object_ranges.iter().collect();
    ranges.sort_by_key(|r| (r.region, r.offset, r.object));
    let lines = &case.profile.lines;
    let same = |a: &LineUse, b: &LineUse| (a.region, a.offset) == (b.region, b.offset);
    let mut places: BTreeMap<(Vec<ObjectIx>, Option<RegionIx>), FalseSharingSite> = BTreeMap::new();
    for line in lines.chunk_by(same).filter_map(falsely_shared) {
        let inside = touched_structures(&ranges, &line, size);
        let inside = without_other_times(case, inside);
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
    // After a write each of the others finds the line elsewhere once, as does the writer before it.
    let writes = users.iter().map(|u| writes_of(u));
    let writes = writes.fold(0u64, u64::saturating_add);
    let by_writes = writes.saturating_mul(users.len() as u64);
    users.sort_by_key(|u| (first_byte(u), u.thread));
    Some(FalselySharedLine {
        region: users[0].region,
        offset: users[0].offset,
        contended: others.saturating_mul(2).min(all).min(by_writes),
        users,
    })
}

/// Older profiles say only whether there are any.
fn writes_of(user: &LineUse) -> u64 {
    match (user.write_mask, user.writes) {
        (0, _) => 0,
        (_, 0) => user.accesses,
        (_, writes) => writes,
    }
}

fn first_byte(user: &LineUse) -> u32 {
    (user.read_mask | user.write_mask).trailing_zeros()
}

/// Of heap blocks that lay at the same place one after the other, the one that is accessed most for its size: the line was
/// shared while that was there.
fn without_other_times<'a>(
    case: &FindingContext,
    mut found: Vec<&'a ObjectRange>,
) -> Vec<&'a ObjectRange> {
    let object = |r: &ObjectRange| &case.profile.objects[r.object.at()];
    let density = |r: &ObjectRange| {
        let of = object(r);
        of.reads.saturating_add(of.writes) as f64 / of.size.max(1) as f64
    };
    let meet = |a: &ObjectRange, b: &ObjectRange| {
        let heap = [a, b].iter().all(|r| object(r).kind == ObjectKind::Heap);
        let end = |r: &ObjectRange| r.offset.saturating_add(r.length);
        heap && a.offset < end(b) && b.offset < end(a)
    };
    found.sort_by(|a, b| density(b).total_cmp(&density(a)));
    let mut kept: Vec<&ObjectRange> = Vec::new();
    for range in found {
        if !kept.iter().any(|k| meet(k, range)) {
            kept.push(range);
        }
    }
    kept.sort_by_key(|r| (r.region, r.offset, r.object));
    kept
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
