//! What `hither trace` needs: a sparse shared mapping, memory, the tracer's libraries,
//! and that a program really runs under them.
use super::parse::{kernel_version, kilobytes};
use super::{read_kernel_file, trial, CheckState, CheckedVerb, DoctorCheck};
use hither_sys::probe;
use hither_sys::proc_text::proc_field;
use nix::sys::resource::{getrlimit, Resource, RLIM_INFINITY};
use std::path::Path;

/// Address space that tracing takes: some 78 GiB for the segment and 128 GiB for the map of
/// pages. Nearly all of it stays untouched.
const SEGMENT: usize = 256 << 30;
const SEGMENT_TEXT: &str = "map 256 GiB of sparse shared memory";
/// Memory below which tracing a program of some size gets tight.
const LITTLE_MEMORY: u64 = 512 << 20;
const FEW_MAPPINGS: u64 = 65_530;
const EFBIG: i32 = nix::errno::Errno::EFBIG as i32;
const LIBRARIES: [&str; 2] = ["libdynamorio.so", "libhither_tracer.so"];

pub fn checks() -> Vec<DoctorCheck> {
    let mut checks = vec![
        check_kernel(),
        check_sparse_mapping(),
        check_memory(),
        check_map_count(),
        check_seccomp(),
    ];
    let hither = std::env::current_exe().unwrap_or_default();
    let prefix = hither.parent().and_then(Path::parent);
    let folder = prefix.map(|p| p.join("lib/hither")).unwrap_or_default();
    checks.extend(check_tracer(&folder, &hither));
    checks
}

fn check_kernel() -> DoctorCheck {
    let release = read_kernel_file("/proc/sys/kernel/osrelease").unwrap_or_default();
    let check = DoctorCheck::ok(
        CheckedVerb::Trace,
        "kernel",
        "read /proc/sys/kernel/osrelease",
        format!("Linux {release}"),
    );
    match kernel_version(&release) {
        Some(v) if v >= (5, 10) => check,
        _ => check.failing(
            CheckState::Degraded,
            "hither is tested on Linux 5.10 and later",
            "older kernels may do, except for what `auto` needs",
            "upgrade the kernel",
        ),
    }
}

fn check_sparse_mapping() -> DoctorCheck {
    let overcommit = read_kernel_file("/proc/sys/vm/overcommit_memory").unwrap_or_default();
    let limit = getrlimit(Resource::RLIMIT_AS).map_or(RLIM_INFINITY, |(soft, _)| soft);
    let limit_text = match limit {
        RLIM_INFINITY => "unlimited".to_string(),
        bytes => format!("{} MiB", bytes >> 20),
    };
    let found = format!("works; overcommit_memory {overcommit}, address space {limit_text}");
    let check = DoctorCheck::ok(CheckedVerb::Trace, "address space", SEGMENT_TEXT, found);
    match probe::sparse_mapping(SEGMENT) {
        Ok(()) if overcommit == "2" => check.failing(
            CheckState::Degraded,
            "programs that reserve much memory fail sooner under the tracer",
            "tracing small programs",
            "sudo sysctl vm.overcommit_memory=0",
        ),
        Ok(()) => check,
        Err(e) => check.with_error(&e).failing(
            CheckState::Fails,
            "the tracer cannot lay out its shared memory",
            "reading profiles made elsewhere",
            match (e.raw_os_error(), overcommit.as_str()) {
                (Some(EFBIG), _) => "ulimit -f unlimited",
                _ if limit != RLIM_INFINITY => "ulimit -v unlimited",
                (_, "2") => "sudo sysctl vm.overcommit_memory=0",
                _ => "trace outside of this container or sandbox",
            },
        ),
    }
}

fn check_memory() -> DoctorCheck {
    let info = read_kernel_file("/proc/meminfo").unwrap_or_default();
    let free = proc_field(&info, "MemAvailable").and_then(kilobytes);
    let found = free.map_or("unknown".to_string(), |b| {
        format!("{} MiB available", b >> 20)
    });
    let check = DoctorCheck::ok(CheckedVerb::Trace, "memory", "read /proc/meminfo", found);
    if free.is_none_or(|bytes| bytes >= LITTLE_MEMORY) {
        return check;
    }
    check.failing(
        CheckState::Degraded,
        "programs of more than some hundred MiB: tracing adds about a third",
        "small programs",
        "end other programs, or trace on another machine",
    )
}

fn check_map_count() -> DoctorCheck {
    let count = read_kernel_file("/proc/sys/vm/max_map_count").unwrap_or_default();
    let check = DoctorCheck::ok(
        CheckedVerb::Trace,
        "mappings",
        "read vm.max_map_count",
        count.clone(),
    );
    if count.parse::<u64>().is_ok_and(|n| n < FEW_MAPPINGS) {
        return check.failing(
            CheckState::Degraded,
            "programs with thousands of threads or mappings",
            "others",
            "sudo sysctl vm.max_map_count=65530",
        );
    }
    check
}

fn check_seccomp() -> DoctorCheck {
    let status = read_kernel_file("/proc/self/status").unwrap_or_default();
    let filtered = proc_field(&status, "Seccomp") == Some("2");
    let found = if filtered {
        "a filter is active, as in containers"
    } else {
        "no filter"
    };
    // The filter's effects, if any, show in the other checks.
    DoctorCheck::ok(
        CheckedVerb::Trace,
        "seccomp",
        "read /proc/self/status",
        found,
    )
}

/// The libraries, and a program really traced with them.
fn check_tracer(folder: &Path, hither: &Path) -> Vec<DoctorCheck> {
    let tried = format!("look in {}", folder.display());
    let check = DoctorCheck::ok(CheckedVerb::Trace, "tracer", &tried, "found");
    let missing: Vec<_> = LIBRARIES
        .iter()
        .filter(|l| !folder.join(l).is_file())
        .copied()
        .collect();
    if !missing.is_empty() {
        let mut check = check.failing(
            CheckState::Fails,
            "no program can be traced",
            "reading profiles made elsewhere",
            "make install",
        );
        check.found = format!("missing: {}", missing.join(", "));
        return vec![check];
    }
    let program = ["/bin/true", "/usr/bin/true"]
        .into_iter()
        .find(|p| Path::new(p).exists());
    let Some(program) = program else {
        return vec![check];
    };
    vec![check, trial::check_trial_run(hither, program)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(LIBRARIES[0]), "").unwrap();
        let checks = check_tracer(folder.path(), Path::new("/nonexistent/hither"));
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].state, CheckState::Fails);
        assert_eq!(checks[0].found, "missing: libhither_tracer.so");
    }
}
