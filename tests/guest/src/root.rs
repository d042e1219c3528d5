//! The guest's root folder: busybox for the shell and the small tools, the jobs, and what
//! the caller adds. A program of the host brings its shared libraries and its loader, each
//! at the place where the host has it, so that it starts as it does here.
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::cpio::{self, CpioHeader, CpioWriter};
use crate::GuestError;

const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
/// Where a shell of the guest looks for programs, as init sets it.
const PATH: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
/// Folders of the root that are links into /usr, as in Debian.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
const FOLDERS: [&str; 12] = [
    "dev",
    "etc",
    "home/user",
    "mnt",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "var/tmp",
    "usr/lib64",
    "usr/sbin",
];
const ETC: [(&str, &str); 5] = [
    (
        "passwd",
        "root:x:0:0:root:/root:/bin/sh\n\
         user:x:1000:1000:user:/home/user:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    (
        "group",
        "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n",
    ),
    ("hosts", "127.0.0.1 localhost guest\n"),
    ("hostname", "guest\n"),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\n",
    ),
];

enum EntryContent {
    Folder,
    Link(PathBuf),
    Text(Vec<u8>),
    /// Read when the archive is written.
    Host(PathBuf),
}

struct RootEntry {
    mode: u32,
    modified: u32,
    content: EntryContent,
}

/// What will be in the root, by path without leading slash and through no merged folder.
#[derive(Default)]
pub struct GuestRoot {
    entries: BTreeMap<PathBuf, RootEntry>,
}

impl GuestRoot {
    /// Busybox, accounts, and the usual folders.
    pub fn new() -> Result<GuestRoot, GuestError> {
        let mut root = GuestRoot::default();
        for folder in FOLDERS {
            root.folder(Path::new(folder));
        }
        for merged in MERGED {
            let to = Path::new("usr").join(merged);
            root.folder(&to);
            root.insert(Path::new(merged), 0o777, 0, EntryContent::Link(to));
        }
        for (name, text) in ETC {
            root.text(&Path::new("/etc").join(name), 0o644, text.as_bytes());
        }
        let busybox = on_path("busybox").ok_or_else(|| {
            GuestError::Missing("busybox is not installed; apt-get install busybox-static".into())
        })?;
        root.copy(&busybox, Path::new("/usr/bin/busybox"))?;
        for applet in applets(&busybox)? {
            let link = EntryContent::Link("/usr/bin/busybox".into());
            root.insert(&Path::new("usr/bin").join(applet), 0o777, 0, link);
        }
        let cache = Path::new("/etc/ld.so.cache");
        if cache.exists() {
            root.copy(cache, cache)?;
        }
        Ok(root)
    }

    pub fn text(&mut self, guest: &Path, mode: u32, text: &[u8]) {
        self.insert(
            &archive_path(guest),
            mode,
            0,
            EntryContent::Text(text.to_vec()),
        );
    }

    pub fn folder(&mut self, guest: &Path) {
        let guest = archive_path(guest);
        if !guest.as_os_str().is_empty() && !self.entries.contains_key(&guest) {
            self.insert(&guest, 0o755, 0, EntryContent::Folder);
        }
    }

    /// Copies a file or a whole folder of the host to a place in the guest, with the
    /// libraries that its programs need. A link to a file at its usual place stays a
    /// link, and what it points to comes along.
    pub fn copy(&mut self, host: &Path, guest: &Path) -> Result<(), GuestError> {
        self.add(host, guest, host == guest)
    }

    fn add(&mut self, host: &Path, guest: &Path, keep_link: bool) -> Result<(), GuestError> {
        let cannot_read = |e| GuestError::io(format!("cannot read {}", host.display()), e);
        let linked = fs::symlink_metadata(host).map_err(cannot_read)?;
        if linked.is_symlink() && keep_link {
            return self.link(host, guest);
        }
        let meta = fs::metadata(host).map_err(cannot_read)?;
        let modified = u32::try_from(meta.mtime()).unwrap_or(0);
        let mode = meta.mode() & 0o7777;
        let place = archive_path(guest);
        if meta.is_dir() {
            self.insert(&place, mode, modified, EntryContent::Folder);
            for entry in fs::read_dir(host).map_err(cannot_read)? {
                let name = entry.map_err(cannot_read)?.file_name();
                self.add(&host.join(&name), &guest.join(&name), true)?;
            }
        } else if meta.is_file() && !self.is_copy(&place, host) {
            self.insert(
                &place,
                mode,
                modified,
                EntryContent::Host(host.to_path_buf()),
            );
            for needed in start_dependencies(host, mode).map_err(cannot_read)? {
                // Busybox is shell enough for a script.
                if !self.has(&needed) {
                    self.copy(&needed, &needed)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps a link as it is. What it points to is copied to where the host has it,
    /// unless it points within a folder that is being copied to another place.
    fn link(&mut self, host: &Path, guest: &Path) -> Result<(), GuestError> {
        let to = fs::read_link(host)
            .map_err(|e| GuestError::io(format!("cannot read {}", host.display()), e))?;
        let place = archive_path(guest);
        if matches!(self.entries.get(&place), Some(RootEntry { content: EntryContent::Link(old), .. }) if *old == to)
        {
            return Ok(());
        }
        self.insert(&place, 0o777, 0, EntryContent::Link(to.clone()));
        let target = host.parent().unwrap_or(Path::new("/")).join(&to);
        let comes_along = host == guest || to.is_absolute();
        // A link to nowhere is as dangling in the guest as it is here.
        if comes_along && target.exists() {
            let target = normalise_path(&target);
            self.copy(&target, &target)?;
        }
        Ok(())
    }

    fn is_copy(&self, place: &Path, host: &Path) -> bool {
        matches!(self.entries.get(place), Some(RootEntry { content: EntryContent::Host(file), .. }) if file == host)
    }

    pub fn has(&self, guest: &Path) -> bool {
        self.entries.contains_key(&archive_path(guest))
    }

    /// Whether a shell of the guest finds a program of that name.
    pub fn has_program(&self, name: &str) -> bool {
        let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
        folders
            .iter()
            .any(|folder| self.has(&Path::new(folder).join(name)))
    }

    fn insert(&mut self, place: &Path, mode: u32, modified: u32, content: EntryContent) {
        if let Some(parent) = place.parent() {
            self.folder(parent);
        }
        let entry = RootEntry {
            mode,
            modified,
            content,
        };
        self.entries.insert(place.to_path_buf(), entry);
    }

    /// Writes it as an archive that the kernel can unpack.
    pub fn write(&self, file: &fs::File) -> Result<(), GuestError> {
        let failed = |e| GuestError::io("cannot write the guest's root".into(), e);
        let to = BufWriter::with_capacity(1 << 20, file);
        let mut archive = CpioWriter::new(to);
        for (place, entry) in &self.entries {
            let (kind, data) = match &entry.content {
                EntryContent::Folder => (cpio::FOLDER, Vec::new()),
                EntryContent::Link(to) => (cpio::LINK, to.as_os_str().as_encoded_bytes().to_vec()),
                EntryContent::Text(text) => (cpio::FILE, text.clone()),
                EntryContent::Host(host) => {
                    let cannot_read =
                        |e| GuestError::io(format!("cannot read {}", host.display()), e);
                    (cpio::FILE, fs::read(host).map_err(cannot_read)?)
                }
            };
            let head = CpioHeader {
                name: place.as_os_str().as_encoded_bytes(),
                mode: kind | entry.mode,
                modified: entry.modified,
            };
            archive.entry(&head, &data).map_err(failed)?;
        }
        let mut to = archive.finish().map_err(failed)?;
        to.flush().map_err(failed)
    }

    /// Lays it out in an empty folder of the host, for a test that needs no machine of its own.
    pub fn lay_out(&self, folder: &Path) -> Result<(), GuestError> {
        for (place, entry) in &self.entries {
            let file = folder.join(place);
            let made = match &entry.content {
                EntryContent::Folder => fs::create_dir(&file),
                EntryContent::Link(to) => symlink(to, &file),
                EntryContent::Text(text) => fs::write(&file, text)
                    .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(entry.mode))),
                EntryContent::Host(host) => fs::copy(host, &file).map(drop),
            };
            made.map_err(|e| GuestError::io(format!("cannot make {}", file.display()), e))?;
        }
        Ok(())
    }
}

/// The path as it stands in the archive: no slash in front, nothing through `/lib` and
/// its like, which are links.
fn archive_path(guest: &Path) -> PathBuf {
    let place = normalise_path(guest);
    let place = place.strip_prefix("/").unwrap_or(&place);
    let first = place.components().next();
    let merged = |c: Component| MERGED.iter().any(|m| c.as_os_str() == *m);
    if place.components().count() > 1 && first.is_some_and(merged) {
        return Path::new("usr").join(place);
    }
    place.to_path_buf()
}

/// Without `.` and `..`.
fn normalise_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The program of that name that a shell of the host would start, root's included.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain(PATH.map(PathBuf::from));
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| is_program(file))
}

/// The program of that name that a shell of the guest would start, if it had all that
/// the host has.
pub fn on_guest_path(name: &str) -> Option<PathBuf> {
    let mut files = PATH.iter().map(|folder| Path::new(folder).join(name));
    files.find(|file| is_program(file))
}

pub fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.mode() & 0o111 != 0)
}

/// Names of the tools that this busybox can be called as.
fn applets(busybox: &Path) -> Result<Vec<String>, GuestError> {
    let list = Command::new(busybox).arg("--list").output();
    let list = list.map_err(|e| GuestError::io("cannot start busybox".into(), e))?;
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    let names = text.lines().filter(|name| *name != "busybox");
    Ok(names.map(str::to_string).collect())
}

/// What a file needs to start: the interpreter of a script that may be executed; of an
/// ELF file the shared libraries and the loader, found as the loader itself finds them.
fn start_dependencies(file: &Path, mode: u32) -> io::Result<Vec<PathBuf>> {
    let mut start = Vec::new();
    fs::File::open(file)?.take(256).read_to_end(&mut start)?;
    if start.starts_with(b"#!") && mode & 0o111 != 0 {
        return Ok(script_interpreter(&start).into_iter().collect());
    }
    if !start.starts_with(b"\x7fELF") || !Path::new(LOADER).exists() {
        return Ok(Vec::new());
    }
    // Fails for a static program, and then lists nothing.
    let list = Command::new(LOADER).arg("--list").arg(file).output()?;
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    let path = |line: &str| {
        let found = line.split_once(" => ").map_or(line, |(_, found)| found);
        let path = found.trim().split(" (").next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    Ok(text.lines().filter_map(path).collect())
}

/// `/usr/bin/perl` of `#!/usr/bin/perl -w`, and what `env` would start.
fn script_interpreter(script: &[u8]) -> Option<PathBuf> {
    let line = script.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(&line[2..]);
    let mut words = line.split_whitespace();
    let first = Path::new(words.next()?);
    if first.ends_with("env") {
        return on_guest_path(words.next()?);
    }
    is_program(first).then(|| first.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_folders_lead_into_usr() {
        let cases = [
            ("/lib/x/libc.so.6", "usr/lib/x/libc.so.6"),
            ("/usr/lib/x", "usr/lib/x"),
            ("/opt/../bin/./sh", "usr/bin/sh"),
            ("/bin", "bin"),
            ("/", ""),
            ("/lib64/ld.so", "usr/lib64/ld.so"),
            ("/library/x", "library/x"),
        ];
        for (path, expected) in cases {
            assert_eq!(archive_path(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn a_program_brings_its_loader_and_libraries_and_a_link_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/usr/bin/env", &link).unwrap();
        let mut root = GuestRoot::default();
        root.copy(&link, &link).unwrap();
        let has = |path: &str| root.entries.contains_key(&archive_path(Path::new(path)));
        assert!(has(link.to_str().unwrap()) && has("/usr/bin/env") && has(LOADER));
        let libc = root.entries.keys().any(|k| k.ends_with("libc.so.6"));
        assert!(libc, "{:?}", root.entries.keys());
    }

    #[test]
    fn a_root_is_laid_out_with_links_and_modes() {
        let folder = tempfile::tempdir().unwrap();
        let mut root = GuestRoot::default();
        root.text(Path::new("/a/b"), 0o755, b"x");
        root.insert(Path::new("c"), 0o777, 0, EntryContent::Link("a/b".into()));
        root.lay_out(folder.path()).unwrap();
        let meta = fs::metadata(folder.path().join("c")).unwrap();
        assert_eq!((meta.len(), meta.mode() & 0o777), (1, 0o755));
    }

    #[test]
    fn parents_come_before_what_is_in_them() {
        let mut root = GuestRoot::default();
        root.text(Path::new("/a/b/c"), 0o644, b"");
        let names: Vec<_> = root
            .entries
            .keys()
            .map(|p| p.display().to_string())
            .collect();
        assert_eq!(names, ["a", "a/b", "a/b/c"]);
    }
}
