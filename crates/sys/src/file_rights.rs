//! Opening files with the rights of another user: root reads what a process names as that
//! process could, so that no secret of others gets into a profile.
use nix::unistd::{Gid, Uid};
use std::io;

/// Whose files may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRights {
    pub user: u32,
    pub group: u32,
    pub groups: Vec<u32>,
}

impl FileRights {
    /// Runs `f` with these rights over files, on a thread of its own: the other threads keep
    /// theirs. Only root can; for others, and for root's own rights, `f` just runs.
    ///
    /// # Errors
    /// When the kernel refuses; then `f` does not run.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        if !nix::unistd::geteuid().is_root() || self.user == 0 {
            return Ok(f());
        }
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.take_on()?;
                Ok(f())
            });
            let joined = thread.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Gives the calling thread these rights for good.
    fn take_on(&self) -> io::Result<()> {
        // SAFETY: the kernel reads as many groups as it is told. Not glibc's setgroups, which
        // changes all threads.
        let set =
            unsafe { libc::syscall(libc::SYS_setgroups, self.groups.len(), self.groups.as_ptr()) };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
        // The kernel also takes away what lets root ignore permissions of files. It answers with
        // the value before, never with an error; -1 changes nothing.
        let group = |id: u32| nix::unistd::setfsgid(Gid::from_raw(id)).as_raw();
        let user = |id: u32| nix::unistd::setfsuid(Uid::from_raw(id)).as_raw();
        group(self.group);
        user(self.user);
        if (group(u32::MAX), user(u32::MAX)) != (self.group, self.user) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_read_as_another_user_and_then_as_root_again() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root can take on the rights of others");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let set = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        set(folder.path(), 0o755);
        let rights = FileRights {
            user: 54_321,
            group: 54_321,
            groups: vec![54_322],
        };
        let read = || fs::read(&secret).map_err(|e| e.kind());
        for (mode, readable) in [(0o644, true), (0o600, false), (0o640, false)] {
            set(&secret, mode);
            let theirs = rights.run(read).unwrap();
            assert_eq!(theirs.is_ok(), readable, "{mode:o}: {theirs:?}");
            assert!(read().is_ok());
        }
        std::os::unix::fs::chown(&secret, None, Some(54_322)).unwrap();
        assert!(rights.run(read).unwrap().is_ok(), "by a group");
    }
}
