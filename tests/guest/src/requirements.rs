//! What a guest needs of the host, and what becomes of a test where that is missing.
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::boot::QEMU;
use crate::root::on_path;
use crate::{kernel, DebianKernel, Guest, GuestError};

/// Set to `required` where a missing guest is a failure.
const SWITCH: &str = "HITHER_GUEST";
const TOOLS: [(&str, &str); 5] = [
    (QEMU, "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("setpriv", "util-linux"),
    ("zstd", "zstd"),
    ("lz4", "lz4"),
];

pub(crate) fn check_tools() -> Result<(), GuestError> {
    let mut absent = TOOLS.iter().filter(|(tool, _)| on_path(tool).is_none());
    absent.next().map_or(Ok(()), |(tool, package)| {
        let fix = format!("apt-get install --no-install-recommends {package}");
        Err(GuestError::Missing(format!(
            "{tool} is not installed; {fix}"
        )))
    })
}

/// Where prepared kernels are kept: beside what cargo builds.
pub(crate) fn kernel_store() -> Result<PathBuf, GuestError> {
    let exe = std::env::current_exe();
    let exe = exe.map_err(|e| GuestError::io("cannot find this program".into(), e))?;
    // Cargo marks its target folder so that backups pass it over.
    let marked = exe
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").exists());
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    Ok(marked.unwrap_or(&usual).join("guest"))
}

/// Gets ready what can be got ready without booting: downloads the kernel if need be.
pub fn prepare(kernel: DebianKernel) -> Result<(), GuestError> {
    check_tools()?;
    kernel::prepare(kernel, &kernel_store()?).map(|_| ())
}

/// Why no guest with that kernel can be had here, with the fix; `None` if all is there.
/// Tried once per process.
pub fn missing(kernel: DebianKernel) -> Option<String> {
    static WHY: [OnceLock<Option<String>>; 2] = [const { OnceLock::new() }; 2];
    let tried = match kernel {
        DebianKernel::V6_1 => &WHY[0],
        DebianKernel::V6_12 => &WHY[1],
    };
    tried
        .get_or_init(|| prepare(kernel).err().map(|e| e.to_string()))
        .clone()
}

/// Whether a missing guest is a failure here.
pub fn required() -> bool {
    std::env::var_os(SWITCH).is_some_and(|v| v == "required")
}

/// A guest for the test that calls this, or `None` if there cannot be one: then a line on
/// stderr has named the test and the reason. Panics where guests are required.
#[track_caller]
pub fn or_skip() -> Option<Guest> {
    or_skip_with(DebianKernel::V6_12)
}

/// The same with another kernel.
#[track_caller]
pub fn or_skip_with(kernel: DebianKernel) -> Option<Guest> {
    let Some(why) = missing(kernel) else {
        return Some(Guest::new().kernel(kernel));
    };
    assert!(!required(), "{SWITCH}=required, but {why}");
    // The test harness names threads after tests, and keeps what `eprintln!` prints of a
    // test that passes to itself.
    let place = std::panic::Location::caller();
    let place = format!("{}:{}", place.file(), place.line());
    let thread = std::thread::current();
    let test = thread.name().filter(|n| *n != "main").unwrap_or(&place);
    let _ = writeln!(std::io::stderr(), "skipped {test}: {why}");
    None
}
