//! Debian's kernel, from its package: downloaded and unpacked once, never installed.
//!
//! QEMU boots an ELF kernel faster than a compressed one, so the ELF file is taken out of
//! the compressed image: the boot protocol's header says where it lies
//! (Documentation/arch/x86/boot.rst: `setup_sects`, `payload_offset`, `payload_length`).
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::fcntl::{Flock, FlockArg};

use crate::{DebianKernel, GuestError};

/// Raise it when what a prepared folder holds changes.
const LAYOUT: &str = "layout 2\n";
/// Begins the names of folders that are not complete.
const INCOMPLETE_PREFIX: &str = "making-";
/// What the virtio ports need and kernel 6.1 has as modules, each after those it uses.
const MODULES: [&str; 6] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_console",
];

/// A prepared kernel: a folder with `vmlinux` and `modules/`.
pub struct KernelImage {
    folder: PathBuf,
}

impl KernelImage {
    pub fn vmlinux(&self) -> PathBuf {
        self.folder.join("vmlinux")
    }

    /// In the order in which they must be loaded.
    pub fn modules(&self) -> Vec<PathBuf> {
        let folder = self.folder.join("modules");
        let numbered = MODULES.iter().enumerate();
        let files = numbered.map(|(at, name)| folder.join(format!("{at}-{name}.ko")));
        files.filter(|file| file.exists()).collect()
    }

    fn is_ready(&self) -> bool {
        fs::read_to_string(self.folder.join("stamp")).is_ok_and(|s| s == LAYOUT)
    }
}

/// The kernel's image, prepared in `store` if it is not there yet. Two processes may do
/// so at once, and may be killed: one prepares while the other waits, in a folder that
/// gets its name when it is complete.
pub fn prepare(kernel: DebianKernel, store: &Path) -> Result<KernelImage, GuestError> {
    let image = KernelImage {
        folder: store.join(format!("linux-{}", kernel.name())),
    };
    if image.is_ready() {
        return Ok(image);
    }
    let failed = |e| GuestError::io(format!("cannot write in {}", store.display()), e);
    fs::create_dir_all(store).map_err(failed)?;
    let lock = fs::File::create(store.join("lock")).map_err(failed)?;
    let _lock = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, e)| failed(e.into()))?;
    if image.is_ready() {
        return Ok(image);
    }
    remove_leftovers(store);
    let work = tempfile::Builder::new()
        .prefix(INCOMPLETE_PREFIX)
        .tempdir_in(store)
        .map_err(failed)?;
    let made = work.path().join("made");
    let package = download(kernel, work.path())?;
    let unpacked = work.path().join("unpacked");
    run_tool(Command::new("dpkg").arg("-x").arg(&package).arg(&unpacked))?;
    fs::create_dir_all(made.join("modules")).map_err(failed)?;
    extract_vmlinux(
        &find_by_prefix(&unpacked.join("boot"), "vmlinuz")?,
        &made.join("vmlinux"),
    )?;
    copy_modules(&unpacked.join("lib/modules"), &made.join("modules"))?;
    fs::write(made.join("stamp"), LAYOUT).map_err(failed)?;
    if image.folder.exists() {
        // Of an older layout; whoever still boots from it has its files open.
        fs::rename(&image.folder, work.path().join("old")).map_err(failed)?;
    }
    fs::rename(&made, &image.folder).map_err(failed)?;
    Ok(image)
}

/// What processes left that were killed while they prepared; the lock is held.
fn remove_leftovers(store: &Path) {
    while let Ok(leftover) = find_by_prefix(store, INCOMPLETE_PREFIX) {
        if fs::remove_dir_all(leftover).is_err() {
            return;
        }
    }
}

/// Downloads the package that Debian's meta-package names today.
fn download(kernel: DebianKernel, to: &Path) -> Result<PathBuf, GuestError> {
    let name = kernel_package(kernel).ok_or_else(|| {
        let name = kernel.name();
        GuestError::Missing(format!(
            "apt-cache knows no linux-image package of kernel {name} for amd64 clouds; run \
             apt-get update, with bookworm-security among the sources"
        ))
    })?;
    let said = Command::new("apt-get")
        .args(["download", "-q", &name])
        .current_dir(to)
        .output();
    let said = said.map_err(|e| GuestError::Missing(format!("cannot start apt-get: {e}")))?;
    if !said.status.success() {
        return Err(GuestError::Missing(format!(
            "`apt-get download {name}` failed; run apt-get update and see that the network is \
             there: {}",
            text(&said.stderr).trim()
        )));
    }
    find_by_prefix(to, &name)
}

/// The package of today's version, on which the meta-package depends.
fn kernel_package(kernel: DebianKernel) -> Option<String> {
    let version = kernel.name();
    let wanted = format!("linux-image-{version}.");
    let metas = [
        format!("linux-image-{version}-cloud-amd64"),
        "linux-image-cloud-amd64".into(),
    ];
    metas.iter().find_map(|meta| {
        let said = Command::new("apt-cache")
            .args(["depends", meta])
            .output()
            .ok()?;
        let said = text(&said.stdout);
        let depends = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "));
        let name = depends.into_iter().find(|name| name.starts_with(&wanted))?;
        Some(name.to_string())
    })
}

/// The first file of a folder whose name begins so.
fn find_by_prefix(folder: &Path, prefix: &str) -> Result<PathBuf, GuestError> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = entries.map(|e| e.path());
    let begins = |p: &PathBuf| {
        p.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(prefix))
    };
    paths.find(begins).ok_or_else(|| {
        let folder = folder.display();
        GuestError::Missing(format!("the kernel's package has no {prefix} in {folder}"))
    })
}

fn extract_vmlinux(vmlinuz: &Path, vmlinux: &Path) -> Result<(), GuestError> {
    let unknown = || {
        GuestError::Missing(format!(
            "{} is no kernel image that is known",
            vmlinuz.display()
        ))
    };
    let image =
        fs::read(vmlinuz).map_err(|e| GuestError::io("cannot read the kernel".into(), e))?;
    let payload = compressed_payload(&image).ok_or_else(unknown)?;
    let tool = match payload {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        [0x02, 0x21, 0x4c, 0x18, ..] => "lz4",
        [0xfd, b'7', b'z', ..] => "xz",
        [0x1f, 0x8b, ..] => "gzip",
        _ => return Err(unknown()),
    };
    let out =
        fs::File::create(vmlinux).map_err(|e| GuestError::io("cannot write vmlinux".into(), e))?;
    let mut child = Command::new(tool)
        .args(["-d", "-c"])
        .stdin(Stdio::piped())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|_| {
            GuestError::Missing(format!("{tool} is not installed; apt-get install {tool}"))
        })?;
    let mut stdin = child.stdin.take().ok_or_else(unknown)?;
    // If the tool ends early, what it made is looked at below.
    let _ = stdin.write_all(payload);
    drop(stdin);
    let said = child
        .wait_with_output()
        .map_err(|e| GuestError::io(format!("{tool} failed"), e))?;
    let start = fs::File::open(vmlinux).and_then(|mut f| {
        let mut magic = [0; 4];
        std::io::Read::read_exact(&mut f, &mut magic).map(|()| magic)
    });
    if start.is_ok_and(|magic| &magic == b"\x7fELF") && said.status.success() {
        return Ok(());
    }
    let said = text(&said.stderr);
    Err(GuestError::Missing(format!(
        "{tool} could not unpack the kernel: {said}"
    )))
}

/// The compressed ELF file within the image, without the length that ends it.
fn compressed_payload(image: &[u8]) -> Option<&[u8]> {
    let number =
        |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let start = (usize::from(image[0x1f1]) + 1) * 512 + number(0x248)?;
    let length = number(0x24c)?;
    image.get(start..start + length.checked_sub(4)?)
}

fn copy_modules(from: &Path, to: &Path) -> Result<(), GuestError> {
    let version = find_by_prefix(from, "")?;
    let drivers = version.join("kernel/drivers");
    for (at, name) in MODULES.iter().enumerate() {
        let folder = if *name == "virtio_console" {
            "char"
        } else {
            "virtio"
        };
        let module = drivers.join(folder).join(format!("{name}.ko"));
        // What is not there is built in.
        if module.exists() {
            let copied = fs::copy(&module, to.join(format!("{at}-{name}.ko")));
            copied.map_err(|e| GuestError::io(format!("cannot copy {name}.ko"), e))?;
        }
    }
    Ok(())
}

fn run_tool(command: &mut Command) -> Result<Output, GuestError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let said = command.output();
    let said = said.map_err(|e| GuestError::Missing(format!("cannot start {name}: {e}")))?;
    if !said.status.success() {
        let said = text(&said.stderr);
        return Err(GuestError::Missing(format!("{command:?} failed: {said}")));
    }
    Ok(said)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
