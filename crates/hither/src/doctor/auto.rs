//! What `hither auto` needs: to see page faults, and ways to cause some (`--sampler`).
use super::{read_kernel_file, CheckState, CheckedVerb, DoctorCheck};
use hither_sys::bpf::BpfFaultMonitor;
use hither_sys::proc_text::{has_swap, hints_all_memory};
use hither_sys::{inject, madvise, probe};

use nix::libc;
use nix::unistd::{access, AccessFlags};
use std::io;
use std::path::Path;

const UNAFFECTED_VERBS: &str = "hither trace, stat and run";
const OTHER_SAMPLERS: &str = "the other ways to cause page faults";
const SCAN_PERIOD_PATH: &str = "/sys/kernel/debug/sched/numa_balancing/scan_period_min_ms";

pub fn checks() -> Vec<DoctorCheck> {
    // In the order in which they are chosen.
    let tracer = BpfFaultMonitor::new();
    vec![
        check_page_faults(tracer.is_ok()),
        check_bpf(tracer.map(drop)),
        check_numa_balancing(),
        check_move_sampler(),
        check_pageout_sampler(),
        check_write_protect_sampler(),
    ]
}

fn check_page_faults(or_else: bool) -> DoctorCheck {
    let paranoid =
        read_kernel_file("/proc/sys/kernel/perf_event_paranoid").unwrap_or("absent".to_string());
    let tried = "open software events for page faults with addresses";
    let found = format!("works; perf_event_paranoid {paranoid}");
    let check = DoctorCheck::ok(CheckedVerb::Auto, "perf events", tried, found);
    let too_high = paranoid.parse().is_ok_and(|level: i32| level > 2);
    match (probe::perf_page_faults(true), probe::perf_page_faults(false)) {
        (_, Ok(())) => check,
        (Ok(()), Err(_)) => check.failing(
            CheckState::Degraded,
            "seeing faults that happen inside of system calls",
            "seeing those of user code, which are nearly all",
            "be root, or sudo sysctl kernel.perf_event_paranoid=1",
        ),
        (Err(e), _) => check.with_error(&e).failing(
            if or_else { CheckState::Degraded } else { CheckState::Fails },
            "seeing which thread faults on which page",
            if or_else { "seeing it by BPF" } else { UNAFFECTED_VERBS },
            if too_high {
                "be root, or sudo sysctl kernel.perf_event_paranoid=2"
            } else {
                "in docker: --cap-add PERFMON --security-opt seccomp=unconfined; else a kernel with CONFIG_PERF_EVENTS"
            },
        ),
    }
}

fn check_numa_balancing() -> DoctorCheck {
    let path = Path::new("/proc/sys/kernel/numa_balancing");
    let tried =
        "read kernel.numa_balancing and ask whether it and its rates in debugfs may be written";
    let state = read_kernel_file(path);
    let check = DoctorCheck::ok(CheckedVerb::Auto, "numa-balancing", tried, "");
    let may = |path: &Path| access(path, AccessFlags::W_OK);
    let (switch, rates) = (may(path), may(Path::new(SCAN_PERIOD_PATH)));
    let mut check = match (state.as_deref(), switch) {
        (None, _) => check.failing(
            CheckState::Degraded,
            "sampling private memory by the kernel's own hinting faults",
            OTHER_SAMPLERS,
            "boot a kernel with CONFIG_NUMA_BALANCING",
        ),
        (Some(v), Err(e)) if !hints_all_memory(v) => check.with_error(&e.into()).failing(
            CheckState::Degraded,
            "switching the kernel's hinting faults on",
            OTHER_SAMPLERS,
            "be root and give --allow-sysctl, or sudo sysctl kernel.numa_balancing=1",
        ),
        (Some(_), _) if rates.is_err() => check.failing(
            CheckState::Degraded,
            "setting how often the kernel goes through memory, which it does once a second or less",
            "seeing patterns after some seconds, and sooner by other ways",
            "sudo mount -t debugfs none /sys/kernel/debug, with a kernel that is not locked down",
        ),
        _ => check,
    };
    check.found = match (state.as_deref(), switch.is_ok(), rates.is_ok()) {
        (None, ..) => "not in this kernel".to_string(),
        (Some(v), true, true) => format!("{v}, may be changed with --allow-sysctl"),
        (Some(v), true, false) => format!("{v}, may be changed with --allow-sysctl, its rates not"),
        (Some(v), false, _) => format!("{v}, may not be changed"),
    };
    check
}

fn check_move_sampler() -> DoctorCheck {
    let tried = "open userfaultfd with moving and events, and attach to a child with ptrace";
    let stops = "sampling private memory, reads as well as writes, at any pace";
    let check = DoctorCheck::ok(CheckedVerb::Auto, "move", tried, "works");
    if let Err(e) = inject::can_enable_uffd_features(inject::AGENT_UFFD_FEATURES) {
        let old = e.raw_os_error() == Some(libc::EINVAL);
        return check.with_error(&e).failing(
            CheckState::Degraded,
            stops,
            OTHER_SAMPLERS,
            if old {
                "upgrade the kernel to 6.8"
            } else {
                "be root; in docker: --cap-add SYS_PTRACE --security-opt seccomp=unconfined"
            },
        );
    }
    check_attach(check, stops)
}

fn check_write_protect_sampler() -> DoctorCheck {
    let tried =
        "open userfaultfd with asynchronous write protection, and attach to a child with ptrace";
    let stops = "sampling writes, where nothing else works";
    let found = "works; reads are not seen";
    let check = DoctorCheck::ok(CheckedVerb::Auto, "write-protect", tried, found);
    let (fix, error) = match (probe::userfaultfd(true), inject::supports_pidfd_thread()) {
        (Err(e), _) => ("in docker: --security-opt seccomp=unconfined", Some(e)),
        (_, Err(e)) => ("upgrade the kernel to 6.9", Some(e)),
        (Ok(features), _) if features & probe::UFFD_FEATURE_WP_ASYNC == 0 => {
            ("upgrade the kernel to 6.9", None)
        }
        _ => return check_attach(check, stops),
    };
    let check = error.map(|e| check.clone().with_error(&e)).unwrap_or(check);
    check.failing(CheckState::Degraded, stops, OTHER_SAMPLERS, fix)
}

/// Both need a thread inside the program.
fn check_attach(check: DoctorCheck, stops: &str) -> DoctorCheck {
    match probe::ptrace_seize() {
        Ok(()) => check,
        Err(e) => check.with_error(&e).failing(
            CheckState::Degraded,
            stops,
            OTHER_SAMPLERS,
            "run outside of debuggers and strace; in docker: --cap-add SYS_PTRACE",
        ),
    }
}

fn check_pageout_sampler() -> DoctorCheck {
    let tried = "read /proc/swaps, and call process_madvise for another process";
    let check = DoctorCheck::ok(
        CheckedVerb::Auto,
        "pageout",
        tried,
        "works, and there is no swap space",
    );
    let stops = "sampling memory shared between processes by paging it out";
    if read_kernel_file("/proc/swaps").is_some_and(|swaps| has_swap(&swaps)) {
        let mut check = check.failing(
            CheckState::Degraded,
            stops,
            OTHER_SAMPLERS,
            "sudo swapoff -a for the run, where memory suffices",
        );
        check.found = "there is swap space, to which memory would be written".to_string();
        return check;
    }
    match madvise::can_page_out() {
        Ok(()) => check,
        Err(e) => {
            let old = e.raw_os_error() == Some(libc::ENOSYS);
            check.with_error(&e).failing(
                CheckState::Degraded,
                stops,
                OTHER_SAMPLERS,
                if old {
                    "upgrade the kernel to 5.10"
                } else {
                    "be root, or sudo setcap cap_sys_nice+ep on hither; in docker: --cap-add SYS_NICE"
                },
            )
        }
    }
}

fn check_bpf(traced: io::Result<()>) -> DoctorCheck {
    let tried = "load programs into the kernel and attach them to its page faults";
    let check = DoctorCheck::ok(CheckedVerb::Auto, "BPF", tried, "works");
    match traced {
        Ok(()) => check,
        Err(e) => check.with_error(&e).failing(
            CheckState::Degraded,
            "seeing page faults where perf events are forbidden",
            "seeing them by perf events",
            "be root, or sudo setcap cap_bpf,cap_perfmon+ep on hither; outside of containers",
        ),
    }
}
