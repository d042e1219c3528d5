//! What `hither auto` needs: to see page faults, to cause some, to move pages.
use super::{read, Check, State, Verb};
use hither_sys::probe;
use nix::unistd::{access, AccessFlags};
use std::path::Path;

const ANYWAY: &str = "hither trace, stat and run";

pub fn checks() -> Vec<Check> {
    vec![faults(), userfaultfd(), hinting(), bpf()]
}

fn faults() -> Check {
    let paranoid = read("/proc/sys/kernel/perf_event_paranoid").unwrap_or("absent".to_string());
    let tried = "open a software event for page faults with addresses";
    let check = Check::ok(
        Verb::Auto,
        "perf events",
        tried,
        format!("works; perf_event_paranoid {paranoid}"),
    );
    match probe::perf_page_faults() {
        Ok(()) => check,
        Err(e) => check.error(&e).bad(
            State::Fails,
            "seeing which thread faults on which page",
            ANYWAY,
            "sudo sysctl kernel.perf_event_paranoid=2; in docker: --cap-add PERFMON --security-opt seccomp=unconfined",
        ),
    }
}

fn userfaultfd() -> Check {
    let tried = "open userfaultfd, by the system call and by /dev/userfaultfd";
    let unprivileged =
        read("/proc/sys/vm/unprivileged_userfaultfd").unwrap_or("absent".to_string());
    let check = Check::ok(Verb::Auto, "userfaultfd", tried, "");
    let ways = [
        ("the system call, for all faults", probe::userfaultfd(false)),
        ("/dev/userfaultfd", probe::userfaultfd_device()),
        (
            "the system call, for faults of user code only",
            probe::userfaultfd(true),
        ),
    ];
    let mut error = None;
    for (way, outcome) in ways {
        let features = match outcome {
            Ok(features) => features,
            Err(e) => {
                error = error.or(Some(e));
                continue;
            }
        };
        let moves = features & probe::FEATURE_MOVE != 0;
        let mut check = check;
        check.found = format!(
            "works by {way}; moving pages {}; unprivileged_userfaultfd {unprivileged}",
            if moves {
                "works"
            } else {
                "is not in this kernel"
            }
        );
        if moves {
            return check;
        }
        return check.bad(
            State::Degraded,
            "sampling accesses by moving pages away (UFFDIO_MOVE, Linux 6.8)",
            "NUMA hinting faults, where they are on",
            "upgrade the kernel to 6.8",
        );
    }
    let check = match &error {
        Some(e) => check.error(e),
        None => check,
    };
    check.bad(
        State::Degraded,
        "sampling accesses by moving pages away",
        "NUMA hinting faults, where they are on",
        "sudo sysctl vm.unprivileged_userfaultfd=1",
    )
}

fn hinting() -> Check {
    let path = Path::new("/proc/sys/kernel/numa_balancing");
    let tried = "read kernel.numa_balancing and ask whether it may be written";
    let state = read(path);
    let check = Check::ok(Verb::Auto, "hinting faults", tried, "");
    let writable = access(path, AccessFlags::W_OK);
    let mut check = match (state.as_deref(), writable) {
        (None, _) => check.bad(
            State::Degraded,
            "sampling accesses by the kernel's own hinting faults",
            "sampling by userfaultfd",
            "boot a kernel with CONFIG_NUMA_BALANCING",
        ),
        (Some("0"), Err(e)) => check.error(&e.into()).bad(
            State::Degraded,
            "switching the kernel's hinting faults on",
            "sampling by userfaultfd",
            "sudo sysctl kernel.numa_balancing=1",
        ),
        _ => check,
    };
    check.found = match (state.as_deref(), writable.is_ok()) {
        (None, _) => "not in this kernel".to_string(),
        (Some(v), true) => format!("{v}, may be changed"),
        (Some(v), false) => format!("{v}, may not be changed"),
    };
    check
}

fn bpf() -> Check {
    let kprobes = Path::new("/sys/bus/event_source/devices/kprobe/type").exists();
    let tried = "create a BPF map and look for kprobe events";
    let found = if kprobes {
        "works, with kprobes"
    } else {
        "works, without kprobes"
    };
    let check = Check::ok(Verb::Auto, "BPF", tried, found);
    let (stops, works) = (
        "counting faults inside the kernel, the cheapest way",
        "perf events",
    );
    match probe::bpf_map() {
        Ok(()) if kprobes => check,
        Ok(()) => check.bad(
            State::Degraded,
            stops,
            works,
            "boot a kernel with CONFIG_KPROBE_EVENTS",
        ),
        Err(e) => check.error(&e).bad(
            State::Degraded,
            stops,
            works,
            "run as root, or sudo setcap cap_bpf,cap_perfmon+ep on hither",
        ),
    }
}
