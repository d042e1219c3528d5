//! What `hither run` needs: to follow threads, to pin them, to bind pages.
use super::parse::{bracketed_choice, cgroup, cpu_quota, list_length};
use super::{read_kernel_file, CheckState, CheckedVerb, DoctorCheck};
use hither_sys::perf::{InheritScope, PerfCounter};
use hither_sys::probe;
use hither_sys::proc_text::proc_field;

const POLLING: &str = "pinning from outside, soon after a thread starts (--method polling)";

pub fn checks() -> Vec<DoctorCheck> {
    vec![
        check_ptrace(),
        check_seccomp(),
        check_breakpoints(),
        check_cpus(),
        check_cpu_quota(),
        check_nodes(),
        check_mempolicy(),
        check_huge_pages(),
        check_numa_balancing(),
    ]
}

fn check_ptrace() -> DoctorCheck {
    // Without Yama there is no such file, and no restriction.
    let scope =
        read_kernel_file("/proc/sys/kernel/yama/ptrace_scope").unwrap_or("absent".to_string());
    let tried = "attach to a child with PTRACE_SEIZE";
    let check = DoctorCheck::ok(
        CheckedVerb::Run,
        "ptrace",
        tried,
        format!("works; yama ptrace_scope {scope}"),
    );
    match probe::ptrace_seize() {
        Ok(()) => check,
        Err(e) => check.with_error(&e).failing(
            CheckState::Degraded,
            "pinning each thread before it starts, and binding pages",
            POLLING,
            if scope == "3" {
                "boot with kernel.yama.ptrace_scope below 3 (it cannot be lowered later)"
            } else {
                "run outside of debuggers and strace; in docker: --cap-add SYS_PTRACE"
            },
        ),
    }
}

fn check_seccomp() -> DoctorCheck {
    let tried = "start a child under a seccomp filter";
    let check = DoctorCheck::ok(CheckedVerb::Run, "seccomp", tried, "works");
    match probe::seccomp_filter() {
        Ok(()) => check,
        Err(e) => check.with_error(&e).failing(
            CheckState::Degraded,
            "stopping a program at mmap and brk only, so pages are not bound",
            POLLING,
            "in docker: --security-opt seccomp=unconfined; else a kernel with CONFIG_SECCOMP_FILTER",
        ),
    }
}

/// How far a program has come is counted by breakpoints on its barriers.
fn check_breakpoints() -> DoctorCheck {
    let tried = "count a breakpoint of our own with perf_event_open";
    let check = DoctorCheck::ok(CheckedVerb::Run, "breakpoints", tried, "work");
    let here = check_breakpoints as fn() -> DoctorCheck as usize as u64;
    let counter =
        PerfCounter::breakpoint(nix::unistd::gettid().as_raw(), here, InheritScope::Threads);
    match counter {
        Ok(_) => check,
        Err(e) => check.with_error(&e).failing(
            CheckState::Degraded,
            "following phases by barriers and parallel regions",
            "following phases by time, and placements of one phase",
            "sudo sysctl kernel.perf_event_paranoid=2; in docker: --cap-add PERFMON",
        ),
    }
}

fn check_cpus() -> DoctorCheck {
    let status = read_kernel_file("/proc/self/status").unwrap_or_default();
    let list = proc_field(&status, "Cpus_allowed_list")
        .unwrap_or("?")
        .to_string();
    let online = read_kernel_file("/sys/devices/system/cpu/online").unwrap_or_default();
    let found = format!("allowed {list} of online {online}");
    let check = DoctorCheck::ok(
        CheckedVerb::Run,
        "processors",
        "compare the affinity mask with what is online",
        found,
    );
    match (list_length(&list), list_length(&online)) {
        (Some(a), Some(o)) if a < o => check.failing(
            CheckState::Degraded,
            "threads are placed on the allowed processors only",
            "everything within them",
            "taskset -pc or the cpuset of the cgroup or batch job allows more",
        ),
        _ => check,
    }
}

fn check_cpu_quota() -> DoctorCheck {
    let cgroups = read_kernel_file("/proc/self/cgroup").unwrap_or_default();
    let check = DoctorCheck::ok(
        CheckedVerb::Run,
        "cpu quota",
        "read cpu.max of the cgroup and its parents",
        "none",
    );
    let Some(processors) = tightest_quota(&cgroups) else {
        return check;
    };
    let mut check = check.failing(
        CheckState::Degraded,
        "threads are stopped when the quota is used up, wherever they are placed",
        "everything, more slowly",
        "docker run --cpuset-cpus instead of --cpus; systemctl set-property UNIT CPUQuota=",
    );
    check.found = format!("{processors:.2} processors");
    check
}

/// The least quota on the way from our cgroup to the root, in both cgroup versions.
fn tightest_quota(cgroups: &str) -> Option<f64> {
    let limits = |root: &str, path: &str, get: &dyn Fn(&str) -> Option<String>| {
        let mut at = path.trim_end_matches('/');
        let mut least: Option<f64> = None;
        loop {
            let here = get(&format!("{root}{at}")).and_then(|t| cpu_quota(&t));
            least = [least, here].into_iter().flatten().reduce(f64::min);
            match at.rsplit_once('/') {
                Some((parent, _)) => at = parent,
                None => return least,
            }
        }
    };
    let unified = cgroup(cgroups, None).and_then(|path| {
        limits("/sys/fs/cgroup", path, &|d| {
            read_kernel_file(format!("{d}/cpu.max"))
        })
    });
    let first = cgroup(cgroups, Some("cpu")).and_then(|path| {
        limits("/sys/fs/cgroup/cpu", path, &|d| {
            let (quota, period) = ("cpu.cfs_quota_us", "cpu.cfs_period_us");
            Some(format!(
                "{} {}",
                read_kernel_file(format!("{d}/{quota}"))?,
                read_kernel_file(format!("{d}/{period}"))?
            ))
        })
    });
    [unified, first].into_iter().flatten().reduce(f64::min)
}

fn check_nodes() -> DoctorCheck {
    let list = read_kernel_file("/sys/devices/system/node/has_memory").unwrap_or("0".to_string());
    let status = read_kernel_file("/proc/self/status").unwrap_or_default();
    let allowed = proc_field(&status, "Mems_allowed_list").unwrap_or("?");
    let found = format!("memory on nodes {list}, allowed {allowed}");
    let check = DoctorCheck::ok(
        CheckedVerb::Run,
        "memory nodes",
        "read /sys/devices/system/node",
        found,
    );
    if list_length(&list).is_some_and(|n| n > 1) {
        return check;
    }
    check.failing(
        CheckState::Degraded,
        "placing pages: this machine has one memory node, so all pages are equally near",
        "placing threads by the caches they share; tracing, for use on another machine",
        "nothing to type: run it on a machine with several nodes",
    )
}

fn check_mempolicy() -> DoctorCheck {
    let tried = "call set_mempolicy and move_pages";
    let check = DoctorCheck::ok(CheckedVerb::Run, "page placement", tried, "both work");
    match probe::set_mempolicy().and_then(|()| probe::move_pages()) {
        Ok(_) => check,
        Err(e) => check.with_error(&e).failing(
            CheckState::Degraded,
            "binding and moving pages",
            "placing threads",
            "in docker: --cap-add SYS_NICE; else a kernel with CONFIG_NUMA and CONFIG_MIGRATION",
        ),
    }
}

fn check_huge_pages() -> DoctorCheck {
    let text = read_kernel_file("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let state = bracketed_choice(&text)
        .unwrap_or("not in this kernel")
        .to_string();
    let check = DoctorCheck::ok(
        CheckedVerb::Run,
        "huge pages",
        "read transparent_hugepage/enabled",
        state.clone(),
    );
    if state != "always" {
        return check;
    }
    check.failing(
        CheckState::Degraded,
        "pages are placed 2 MiB at a time, so neighbours that different threads use stay together",
        "everything else",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )
}

fn check_numa_balancing() -> DoctorCheck {
    let state = read_kernel_file("/proc/sys/kernel/numa_balancing");
    let found = match state.as_deref() {
        None => "not in this kernel",
        Some("0") => "off",
        Some(_) => "on",
    };
    let check = DoctorCheck::ok(
        CheckedVerb::Run,
        "NUMA balancing",
        "read kernel.numa_balancing",
        found,
    );
    if found != "on" {
        return check;
    }
    check.failing(
        CheckState::Degraded,
        "the kernel moves pages that are not placed, and its hints cost time",
        "pages that are placed stay, bound or preferred",
        "sudo sysctl kernel.numa_balancing=0",
    )
}
