//! What a record of a page fault costs the program that faults: by perf events, by BPF, and
//! where BPF's filter leaves it out; and what BPF costs the faults of processes that are not followed.
//! Prints nanoseconds of processor time a fault, the least of 60 rounds.
use hither_sys::bpf::BpfFaultMonitor;
use hither_sys::faults::PerfFaultMonitor;
use std::io;

const PAGES: usize = 2000;
const PAGE: usize = 4096;
const ROUNDS: usize = 60;

fn thread_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the structure that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Nanoseconds a fault on fresh memory.
fn fault_time(at: *mut u8, mut drain: impl FnMut()) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        // SAFETY: of a mapping of our own that holds nothing.
        unsafe { libc::madvise(at.cast(), PAGES * PAGE, libc::MADV_DONTNEED) };
        drain();
        let before = thread_time();
        for page in 0..PAGES {
            // SAFETY: within the mapping.
            unsafe { at.add(page * PAGE).write_volatile(1) };
        }
        least = least.min((thread_time() - before) / PAGES as u64);
    }
    least
}

fn main() -> io::Result<()> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address that the kernel picks overlaps nothing of ours.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), PAGES * PAGE, prot, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: advice for this mapping.
    unsafe { libc::madvise(at, PAGES * PAGE, libc::MADV_NOHUGEPAGE) };
    let at = at.cast();
    let alone = fault_time(at, || {});
    println!("a fault: {alone} ns");
    let more = |what: &str, time: u64| println!("{what}: {:+} ns", time as i64 - alone as i64);
    // SAFETY: asks for a number.
    let own = unsafe { libc::gettid() };
    let cpus: Vec<u32> = (0..std::thread::available_parallelism()?.get() as u32).collect();
    let mut perf = PerfFaultMonitor::of_threads(&[own], &cpus)?;
    more(
        "record by perf events",
        fault_time(at, || {
            perf.drain();
        }),
    );
    drop(perf);
    let mut bpf = BpfFaultMonitor::new()?;
    more("BPF, another process is followed", fault_time(at, || {}));
    bpf.follow(std::process::id().cast_signed())?;
    more(
        "record by BPF",
        fault_time(at, || {
            bpf.drain();
        }),
    );
    if let Some(filter) = bpf.take_filter() {
        filter.set_share(0.0);
        more(
            "left out by BPF",
            fault_time(at, || {
                bpf.drain();
            }),
        );
    }
    Ok(())
}
