//! Processes that go on in the row of one that has ended.
use super::*;
use hither_profile::Profile;

/// More than have a row each.
const COMMANDS: u32 = 600;
const STACK: u64 = 0x7fff_0000_0000;

/// A command of the shell in slot 1: its program at an address of its own, mapped by the loader before it is
/// reported, with `grid` in it, and memory that it maps. It reads the first page of each and allocates a block.
fn command(f: &mut Fake, slot: u32) {
    let (process, thread) = (slot as u16, slot);
    let program = 0x5500_0000_0000 + u64::from(slot) * MIB;
    let memory = 0x7f00_0000_0000 + u64::from(slot) * 2 * MIB;
    f.execute(process, 1);
    let by = program - 0x40_0000;
    f.map(process, slot as u16, program + 0x2_0000, 0x1_0000);
    f.moved_module(process, (program, program + MIB / 2), by, "/bin/app");
    f.thread(thread, slot, 0);
    f.with_serial(thread, slot);
    f.map(process, slot as u16, memory, MIB);
    let [grid, site] = [slot * 2, slot * 2 + 1];
    f.object(grid, wire::OBJECT_VARIABLE, slot, program + 0x4000, 0x2000);
    f.allocation(site, process, memory + 0x1000, 4096, program + 0x1234);
    let page = slot * 64;
    f.page(page, program + 0x4000, slot, slot);
    f.page(page + 1, memory, slot, slot);
    f.count(slot, thread, page, 10, 1);
    f.object_count(thread, grid, [10, 1]);
    f.object_count(thread, site, [3, 0]);
}

fn end(f: &mut Fake, slots: std::ops::Range<u32>) {
    for slot in slots {
        f.end_thread(slot);
        f.exit_process(slot as u16);
    }
    for _ in 0..6 {
        f.engine.end_slice();
        f.enter_slice(1);
    }
}

/// A shell that runs so many commands one after the other, in batches of some hundred.
fn shell(commands: u32) -> Fake {
    let mut f = Fake::with_thread();
    f.with_serial(1, 1);
    f.map(1, 1, STACK - 8 * MIB, MIB);
    for first in (2..2 + commands).step_by(COMMANDS as usize) {
        let batch = first..(first + COMMANDS).min(2 + commands);
        batch.clone().for_each(|slot| command(&mut f, slot));
        end(&mut f, batch);
    }
    f
}

fn total(p: &Profile, name: &str) -> (u64, u64, u64) {
    let named = || p.objects.iter().filter(|o| o.name == name);
    (
        named().map(|o| o.reads).sum(),
        named().map(|o| o.count).sum(),
        named().map(|o| o.allocated).sum(),
    )
}

#[test]
fn commands_past_the_limit_add_nothing_but_their_counts() {
    let (few, many) = (shell(COMMANDS), shell(3 * COMMANDS));
    let known = |f: &Fake| f.engine.target_state.regions.all.len();
    assert_eq!(known(&many), known(&few));
    let [few, many] = [few, many].map(|f| f.finish(&mut Names));
    let commands = u64::from(COMMANDS);
    assert_eq!(few.threads.len() as u32, COMMANDS + 1);
    for p in [&few, &many] {
        let n = commands * if std::ptr::eq(p, &many) { 3 } else { 1 };
        let accesses: u64 = p.threads.iter().map(|t| t.reads + t.writes).sum();
        assert_eq!(accesses, 11 * n);
        assert_eq!(total(p, "grid").0, 10 * n);
        assert_eq!(total(p, "buffer"), (3 * n, n, 4096 * n));
        let pages: u64 = p.pages.iter().map(|p| p.reads).sum();
        assert_eq!(pages, 10 * n);
    }
    let sizes = |p: &Profile| {
        (
            p.threads.len(),
            p.regions.len(),
            p.objects.len(),
            p.object_ranges.len(),
        )
    };
    assert_eq!(sizes(&many), sizes(&few));
    let said = |p: &Profile| {
        let mut limits = p.meta.limits.iter();
        limits.any(|l| l.contains("threads are in"))
    };
    assert_eq!([said(&few), said(&many)], [false, true]);
}
