//! Processes that may read files and do little else: what parses files that others made runs in
//! one, so that a flaw in a parser is worth little to who made the file.
use std::io;
use std::path::PathBuf;

use landlock::{
    Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope, ABI,
};
use linux_raw_sys::general::{
    __user_cap_data_struct, __user_cap_header_struct, _LINUX_CAPABILITY_VERSION_3,
    CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
};
use nix::sys::prctl;
use nix::sys::resource::{setrlimit, Resource};
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid};

use crate::errno::check;
use crate::seccomp;

/// Whose files may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRights {
    pub user: u32,
    pub group: u32,
    pub groups: Vec<u32>,
}

/// The user and group that own nothing.
const NOBODY: u32 = 65_534;

/// Leaves the calling process, for good, the right to read files and what it holds open. It cannot
/// write, make, change or execute a file, make a process or socket, or signal or watch a process. It
/// ends with its parent, and before others where memory runs out.
///
/// `of`: whose files. Root takes on that user's rights; with root's own files it becomes nobody, with
/// the one capability to read all files. Others keep their user and have no capability.
///
/// # Errors
/// When the kernel refuses; the process may then have lost some of its rights.
pub fn confine_to_reading(of: Option<&FileRights>) -> io::Result<()> {
    let kept = match of {
        _ if !nix::unistd::geteuid().is_root() => 0,
        Some(of) if of.user != 0 => {
            become_user(of)?;
            0
        }
        _ => {
            prctl::set_keepcaps(true)?;
            // In a user namespace there may be no such user; root's rights there are few.
            let nobody = FileRights {
                user: NOBODY,
                group: NOBODY,
                groups: Vec::new(),
            };
            let _ = become_user(&nobody);
            1 << CAP_DAC_READ_SEARCH
        }
    };
    keep_capabilities(kept)?;
    prctl::set_dumpable(false)?;
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    prctl::set_no_new_privs()?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    seccomp::install_filter(&seccomp::build_reading_filter())
}

/// Leaves the calling thread and those that it starts from now on, for good, the right to read files and
/// to write in these folders, as far as their user could before. They execute nothing, reach no other
/// process and no network, and change nobody's rights. Of a folder that is not there nothing is allowed.
///
/// Root keeps of its capabilities those by which it reads and writes files of others.
///
/// # Errors
/// When the kernel has no such filters; before Linux 5.13 it has none for folders, which is no error.
pub fn confine_to_folders(writable: &[PathBuf]) -> io::Result<()> {
    keep_capabilities(1 << CAP_DAC_READ_SEARCH | 1 << CAP_DAC_OVERRIDE)?;
    prctl::set_no_new_privs()?;
    write_only_in(writable).map_err(io::Error::other)?;
    seccomp::install_filter(&seccomp::build_files_filter())
}

/// As much of it as the kernel knows.
fn write_only_in(writable: &[PathBuf]) -> Result<(), RulesetError> {
    let known = ABI::V6;
    // A terminal that is opened may be asked for its size.
    let refused = (AccessFs::from_write(known) | AccessFs::Execute) & !AccessFs::IoctlDev;
    let files = AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::Truncate;
    let mut rules = Ruleset::default()
        .handle_access(refused)?
        .handle_access(AccessNet::from_all(known))?
        .scope(Scope::from_all(known))?
        .create()?;
    for folder in writable {
        if let Ok(folder) = PathFd::new(folder) {
            rules = rules.add_rule(PathBeneath::new(folder, files))?;
        }
    }
    rules.restrict_self().map(drop)
}

fn become_user(of: &FileRights) -> nix::Result<()> {
    let groups: Vec<Gid> = of.groups.iter().copied().map(Gid::from_raw).collect();
    let (user, group) = (Uid::from_raw(of.user), Gid::from_raw(of.group));
    nix::unistd::setgroups(&groups)?;
    nix::unistd::setresgid(group, group, group)?;
    nix::unistd::setresuid(user, user, user)
}

/// Gives up all capabilities but these, a bit each, and gains none.
fn keep_capabilities(kept: u32) -> io::Result<()> {
    let mut header = __user_cap_header_struct {
        version: _LINUX_CAPABILITY_VERSION_3,
        pid: 0,
    };
    let none = __user_cap_data_struct {
        effective: 0,
        permitted: 0,
        inheritable: 0,
    };
    let mut sets = [none; 2];
    // SAFETY: version 3 is two of these, which the kernel writes, behind a header that it reads.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) })?;
    let kept = sets[0].permitted & kept;
    let sets = [
        __user_cap_data_struct {
            effective: kept,
            permitted: kept,
            inheritable: 0,
        },
        none,
    ];
    // SAFETY: as above, but only read.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::{chown, PermissionsExt};
    use std::path::Path;

    /// The attempts that succeed in a process confined to reading, a bit each.
    fn attempt(of: Option<&FileRights>, attempts: &[&dyn Fn() -> bool]) -> u8 {
        attempt_in(&|| confine_to_reading(of), attempts)
    }

    /// The attempts that succeed in a process so confined, a bit each.
    fn attempt_in(confine: &dyn Fn() -> io::Result<()>, attempts: &[&dyn Fn() -> bool]) -> u8 {
        // The test runner has several threads, so not `fork_off`.
        // SAFETY: the child only makes system calls and ends; what it allocates it does with the
        // C library's allocator, which fork leaves usable.
        match unsafe { nix::unistd::fork() }.unwrap() {
            nix::unistd::ForkResult::Child => {
                let done = confine().is_ok();
                let bits = (0..)
                    .zip(attempts)
                    .map(|(n, attempt)| u8::from(attempt()) << n);
                let bits = if done { bits.sum() } else { 0x80 };
                // SAFETY: ends the copy without what the test runner does at its end.
                unsafe { libc::_exit(i32::from(bits)) }
            }
            nix::unistd::ForkResult::Parent { child } => match nix::sys::wait::waitpid(child, None)
            {
                Ok(nix::sys::wait::WaitStatus::Exited(_, bits)) => bits as u8,
                other => panic!("{other:?}"),
            },
        }
    }

    #[test]
    fn a_confined_process_reads_and_does_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let own = nix::unistd::getpid();
        let attempts: [&dyn Fn() -> bool; 7] = [
            &|| fs::read(&file).is_ok(),
            &|| fs::write(&file, "y").is_ok(),
            &|| File::create(folder.path().join("new")).is_ok(),
            &|| fs::remove_file(&file).is_ok(),
            &|| std::os::unix::net::UnixStream::pair().is_ok(),
            &|| std::process::Command::new("/bin/true").status().is_ok(),
            &|| nix::sys::signal::kill(own, None).is_ok(),
        ];
        assert_eq!(attempt(None, &attempts), 1);
        assert_eq!(fs::read(&file).unwrap(), b"x");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn who_writes_in_a_folder_writes_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (out, other) = (folder.path().join("out"), folder.path().join("other"));
        fs::create_dir(&out).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "x").unwrap();
        let victim = std::process::Command::new("sleep").arg("60").spawn();
        let mut victim = victim.unwrap();
        let process = nix::unistd::Pid::from_raw(i32::try_from(victim.id()).unwrap());
        let attempts: [&dyn Fn() -> bool; 8] = [
            &|| fs::write(out.join("new"), "y").is_ok(),
            &|| fs::rename(out.join("new"), out.join("renamed")).is_ok(),
            &|| std::os::unix::fs::symlink(&other, out.join("link")).is_ok(),
            &|| fs::write(other.join("file"), "y").is_ok(),
            &|| fs::rename(other.join("file"), out.join("file")).is_ok(),
            &|| fs::set_permissions(&other, fs::Permissions::from_mode(0o777)).is_ok(),
            &|| std::process::Command::new("/bin/true").status().is_ok(),
            &|| nix::sys::signal::kill(process, Signal::SIGKILL).is_ok(),
        ];
        let confine = || confine_to_folders(&[out.clone(), folder.path().join("missing")]);
        let done = attempt_in(&confine, &attempts);
        let alive = victim.try_wait().unwrap().is_none();
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert_eq!((done, alive), (0b11, true));
        assert_eq!(fs::read(out.join("renamed")).unwrap(), b"y");
        assert_eq!(fs::read(other.join("file")).unwrap(), b"x");
    }

    #[test]
    fn files_are_read_as_their_user_could() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root can take on the rights of others");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
        };
        set(folder.path(), 0o755);
        let rights = FileRights {
            user: 54_321,
            group: 54_321,
            groups: vec![54_322],
        };
        let read: [&dyn Fn() -> bool; 1] = [&|| fs::read(&secret).is_ok()];
        for (mode, readable) in [(0o644, 1), (0o600, 0), (0o640, 0)] {
            set(&secret, mode);
            assert_eq!(attempt(Some(&rights), &read), readable, "{mode:o}");
            assert_eq!(attempt(None, &read), 1, "root's own");
        }
        chown(&secret, None, Some(54_322)).unwrap();
        assert_eq!(attempt(Some(&rights), &read), 1, "by a group");
    }
}
