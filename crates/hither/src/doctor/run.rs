//! What `hither run` needs: to follow threads, to pin them, to bind pages.
use super::parse::{cgroup, chosen, field, list_length, quota};
use super::{read, Check, State, Verb};
use hither_sys::perf::{Counter, Heirs};
use hither_sys::probe;

const POLLING: &str = "pinning from outside, soon after a thread starts (--method polling)";

pub fn checks() -> Vec<Check> {
    vec![
        ptrace(),
        seccomp(),
        breakpoints(),
        processors(),
        cpu_quota(),
        nodes(),
        policy(),
        huge_pages(),
        balancing(),
    ]
}

fn ptrace() -> Check {
    // Without Yama there is no such file, and no restriction.
    let scope = read("/proc/sys/kernel/yama/ptrace_scope").unwrap_or("absent".to_string());
    let tried = "attach to a child with PTRACE_SEIZE";
    let check = Check::ok(
        Verb::Run,
        "ptrace",
        tried,
        format!("works; yama ptrace_scope {scope}"),
    );
    match probe::ptrace_seize() {
        Ok(()) => check,
        Err(e) => check.error(&e).bad(
            State::Degraded,
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

fn seccomp() -> Check {
    let tried = "start a child under a seccomp filter";
    let check = Check::ok(Verb::Run, "seccomp", tried, "works");
    match probe::seccomp_filter() {
        Ok(()) => check,
        Err(e) => check.error(&e).bad(
            State::Degraded,
            "stopping a program at mmap and brk only, so pages are not bound",
            POLLING,
            "in docker: --security-opt seccomp=unconfined; else a kernel with CONFIG_SECCOMP_FILTER",
        ),
    }
}

/// How far a program has come is counted by breakpoints on its barriers.
fn breakpoints() -> Check {
    let tried = "count a breakpoint of our own with perf_event_open";
    let check = Check::ok(Verb::Run, "breakpoints", tried, "work");
    let here = breakpoints as fn() -> Check as usize as u64;
    let counter = Counter::breakpoint(nix::unistd::gettid().as_raw(), here, Heirs::Threads);
    match counter {
        Ok(_) => check,
        Err(e) => check.error(&e).bad(
            State::Degraded,
            "following phases by barriers and parallel regions",
            "following phases by time, and placements of one phase",
            "sudo sysctl kernel.perf_event_paranoid=2; in docker: --cap-add PERFMON",
        ),
    }
}

fn processors() -> Check {
    let status = read("/proc/self/status").unwrap_or_default();
    let list = field(&status, "Cpus_allowed_list")
        .unwrap_or("?")
        .to_string();
    let online = read("/sys/devices/system/cpu/online").unwrap_or_default();
    let found = format!("allowed {list} of online {online}");
    let check = Check::ok(
        Verb::Run,
        "processors",
        "compare the affinity mask with what is online",
        found,
    );
    match (list_length(&list), list_length(&online)) {
        (Some(a), Some(o)) if a < o => check.bad(
            State::Degraded,
            "threads are placed on the allowed processors only",
            "everything within them",
            "taskset -pc or the cpuset of the cgroup or batch job allows more",
        ),
        _ => check,
    }
}

fn cpu_quota() -> Check {
    let cgroups = read("/proc/self/cgroup").unwrap_or_default();
    let check = Check::ok(
        Verb::Run,
        "cpu quota",
        "read cpu.max of the cgroup and its parents",
        "none",
    );
    let Some(processors) = tightest(&cgroups) else {
        return check;
    };
    let mut check = check.bad(
        State::Degraded,
        "threads are stopped when the quota is used up, wherever they are placed",
        "everything, more slowly",
        "docker run --cpuset-cpus instead of --cpus; systemctl set-property UNIT CPUQuota=",
    );
    check.found = format!("{processors:.2} processors");
    check
}

/// The least quota on the way from our cgroup to the root, in both cgroup versions.
fn tightest(cgroups: &str) -> Option<f64> {
    let limits = |root: &str, path: &str, get: &dyn Fn(&str) -> Option<String>| {
        let mut at = path.trim_end_matches('/');
        let mut least: Option<f64> = None;
        loop {
            let here = get(&format!("{root}{at}")).and_then(|t| quota(&t));
            least = [least, here].into_iter().flatten().reduce(f64::min);
            match at.rsplit_once('/') {
                Some((parent, _)) => at = parent,
                None => return least,
            }
        }
    };
    let unified = cgroup(cgroups, None)
        .and_then(|path| limits("/sys/fs/cgroup", path, &|d| read(format!("{d}/cpu.max"))));
    let first = cgroup(cgroups, Some("cpu")).and_then(|path| {
        limits("/sys/fs/cgroup/cpu", path, &|d| {
            let (quota, period) = ("cpu.cfs_quota_us", "cpu.cfs_period_us");
            Some(format!(
                "{} {}",
                read(format!("{d}/{quota}"))?,
                read(format!("{d}/{period}"))?
            ))
        })
    });
    [unified, first].into_iter().flatten().reduce(f64::min)
}

fn nodes() -> Check {
    let list = read("/sys/devices/system/node/has_memory").unwrap_or("0".to_string());
    let status = read("/proc/self/status").unwrap_or_default();
    let allowed = field(&status, "Mems_allowed_list").unwrap_or("?");
    let found = format!("memory on nodes {list}, allowed {allowed}");
    let check = Check::ok(
        Verb::Run,
        "memory nodes",
        "read /sys/devices/system/node",
        found,
    );
    if list_length(&list).is_some_and(|n| n > 1) {
        return check;
    }
    check.bad(
        State::Degraded,
        "placing pages: this machine has one memory node, so all pages are equally near",
        "placing threads by the caches they share; tracing, for use on another machine",
        "nothing to type: run it on a machine with several nodes",
    )
}

fn policy() -> Check {
    let tried = "call set_mempolicy and move_pages";
    let check = Check::ok(Verb::Run, "page placement", tried, "both work");
    match probe::set_mempolicy().and_then(|()| probe::move_pages()) {
        Ok(_) => check,
        Err(e) => check.error(&e).bad(
            State::Degraded,
            "binding and moving pages",
            "placing threads",
            "in docker: --cap-add SYS_NICE; else a kernel with CONFIG_NUMA and CONFIG_MIGRATION",
        ),
    }
}

fn huge_pages() -> Check {
    let text = read("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let state = chosen(&text).unwrap_or("not in this kernel").to_string();
    let check = Check::ok(
        Verb::Run,
        "huge pages",
        "read transparent_hugepage/enabled",
        state.clone(),
    );
    if state != "always" {
        return check;
    }
    check.bad(
        State::Degraded,
        "pages are placed 2 MiB at a time, so neighbours that different threads use stay together",
        "everything else",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    )
}

fn balancing() -> Check {
    let state = read("/proc/sys/kernel/numa_balancing");
    let found = match state.as_deref() {
        None => "not in this kernel",
        Some("0") => "off",
        Some(_) => "on",
    };
    let check = Check::ok(
        Verb::Run,
        "NUMA balancing",
        "read kernel.numa_balancing",
        found,
    );
    if found != "on" {
        return check;
    }
    check.bad(
        State::Degraded,
        "the kernel moves pages that are not placed, and its hints cost time",
        "pages that are placed stay, bound or preferred",
        "sudo sysctl kernel.numa_balancing=0",
    )
}
