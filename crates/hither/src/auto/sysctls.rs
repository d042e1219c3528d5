//! Settings of the whole system that are changed for a run and put back after it, even if
//! hither is killed.
//!
//! The values from before are kept in a file (the state) as long as anybody needs the
//! changed ones: a line of JSON each, appended before the first change, so that what is
//! there stays readable whenever a writer is killed. Two bytes of it are locked (they need
//! not exist): a process holds `STATE_LOCK` while it reads or writes the state, and one that needs
//! the changed values shares `USE_LOCK` all the time, through its restore helper, which outlives
//! it. The last one puts the values back and empties the file. If even the restore helper was
//! killed, the next hither that looks does so.
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg};
use nix::libc;

/// Where the state is kept: only root can change such settings, and only root write there.
pub const STATE_FILE: &str = "/run/hither-sysctl.json";
/// The bytes that are locked.
const STATE_LOCK: libc::off_t = 0;
const USE_LOCK: libc::off_t = 1;
/// A process holds the lock for less than a millisecond, unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file of /proc/sys or debugfs and what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SysctlSetting {
    pub path: PathBuf,
    pub value: String,
}

/// Access to the state.
#[derive(Debug)]
pub struct SysctlOverrides {
    state: File,
}

impl SysctlOverrides {
    /// # Errors
    /// When the state cannot be written, or others could write what is put back from it.
    pub fn open(path: &Path) -> io::Result<SysctlOverrides> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // Neither follows a link nor waits for the other end of a pipe.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let state = options.mode(0o600).custom_flags(flags).open(path)?;
        let now = state.metadata()?;
        let ours = now.uid() == nix::unistd::geteuid().as_raw() && now.nlink() <= 1;
        if !now.is_file() || !ours || now.mode() & 0o022 != 0 {
            let message = format!(
                "{} was put there by somebody else; remove it",
                path.display()
            );
            return Err(io::Error::other(message));
        }
        Ok(SysctlOverrides { state })
    }

    /// The descriptor that the locks belong to.
    #[must_use]
    pub fn lock_file(&self) -> &File {
        &self.state
    }

    /// Makes settings until [`SysctlOverrides::restore_if_last`]. Those that cannot be made are returned.
    ///
    /// # Errors
    /// When the state cannot be locked, read or written; then nothing was changed.
    pub fn override_settings(&self, settings: &[SysctlSetting]) -> io::Result<Vec<SysctlSetting>> {
        self.take_turn()?;
        let refused = self.save_settings(settings).map(|()| {
            let refused = settings
                .iter()
                .filter(|s| write_setting(s).is_err())
                .cloned();
            refused.collect()
        });
        let shared = match refused {
            Ok(_) => self.set_lock(USE_LOCK, libc::F_RDLCK),
            Err(_) => Ok(()),
        };
        self.set_lock(STATE_LOCK, libc::F_UNLCK)?;
        shared.and(refused)
    }

    /// Puts back what was before, unless another hither still needs it.
    ///
    /// # Errors
    /// When the state cannot be locked, read or emptied.
    pub fn restore_if_last(&self) -> io::Result<()> {
        self.take_turn()?;
        let done = match self.set_lock(USE_LOCK, libc::F_WRLCK) {
            Ok(()) => self.put_back(),
            Err(error) if is_taken(&error) => Ok(()),
            Err(error) => Err(error),
        };
        self.set_lock(USE_LOCK, libc::F_UNLCK)?;
        self.set_lock(STATE_LOCK, libc::F_UNLCK)?;
        done
    }

    fn put_back(&self) -> io::Result<()> {
        for setting in self.saved_settings()?.0 {
            // What is gone from the system needs no putting back.
            let _ = write_setting(&setting);
        }
        self.state.set_len(0)
    }

    /// What the state says, and where its last whole line ends: what was not written to its
    /// end was followed by no change.
    fn saved_settings(&self) -> io::Result<(Vec<SysctlSetting>, u64)> {
        let mut text = Vec::new();
        let mut state = &self.state;
        state.rewind()?;
        state.read_to_end(&mut text)?;
        let end = text.iter().rposition(|&byte| byte == b'\n');
        text.truncate(end.map_or(0, |end| end + 1));
        let lines = text.split(|&byte| byte == b'\n');
        let settings = lines.filter_map(|line| serde_json::from_slice(line).ok());
        Ok((settings.collect(), text.len() as u64))
    }

    /// Appends what is not kept yet.
    fn save_settings(&self, settings: &[SysctlSetting]) -> io::Result<()> {
        let (before, end) = self.saved_settings()?;
        let mut more = Vec::new();
        for setting in settings {
            if before.iter().any(|known| known.path == setting.path) {
                continue;
            }
            if let Ok(value) = fs::read_to_string(&setting.path) {
                let value = value.trim_end().to_owned();
                let setting = SysctlSetting {
                    value,
                    ..setting.clone()
                };
                serde_json::to_writer(&mut more, &setting)?;
                more.push(b'\n');
            }
        }
        let mut state = &self.state;
        self.state.set_len(end)?;
        state.seek(SeekFrom::Start(end))?;
        let written = state.write_all(&more);
        if written.is_err() {
            self.state.set_len(end)?;
        }
        written
    }

    /// Waits for the lock, up to [`PATIENCE`].
    fn take_turn(&self) -> io::Result<()> {
        let start = Instant::now();
        loop {
            match self.set_lock(STATE_LOCK, libc::F_WRLCK) {
                Err(error) if is_taken(&error) && start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) if is_taken(&error) => {
                    let message = "another hither is changing them and does not get on";
                    return Err(io::Error::new(ErrorKind::TimedOut, message));
                }
                done => return done,
            }
        }
    }

    /// Locks or unlocks a byte, for all that share the descriptor. Does not wait.
    fn set_lock(&self, byte: libc::off_t, kind: libc::c_int) -> io::Result<()> {
        let lock = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: byte,
            l_len: 1,
            l_pid: 0,
        };
        fcntl(&self.state, FcntlArg::F_OFD_SETLK(&lock))?;
        Ok(())
    }
}

fn is_taken(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EAGAIN | Errno::EACCES))
}

/// Makes one setting.
///
/// # Errors
/// As the kernel's.
pub fn write_setting(setting: &SysctlSetting) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(&setting.path)?
        .write_all(setting.value.as_bytes())
}

/// Restores the sysctls that a hither and its restore helper left changed, both killed.
pub fn restore_stale(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|state| state.len() > 0) {
        let _ = SysctlOverrides::open(path).and_then(|sysctls| sysctls.restore_if_last());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with two sysctls.
    struct Panel(tempfile::TempDir);

    impl Panel {
        fn new() -> Panel {
            let panel = Panel(tempfile::tempdir().expect("tempdir"));
            fs::write(panel.path("a"), "0\n").expect("write");
            fs::write(panel.path("b"), "1000\n").expect("write");
            panel
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn sysctls(&self) -> SysctlOverrides {
            SysctlOverrides::open(&self.path("state")).expect("state")
        }

        fn setting(&self, name: &str, value: &str) -> SysctlSetting {
            SysctlSetting {
                path: self.path(name),
                value: value.to_owned(),
            }
        }

        #[track_caller]
        fn check(&self, a: &str, b: &str) {
            let read = |name| fs::read_to_string(self.path(name)).expect("read");
            let value = |name| read(name).trim_end().to_owned();
            assert_eq!((value("a").as_str(), value("b").as_str()), (a, b));
        }

        #[track_caller]
        fn check_b(&self, b: &str) {
            let read = fs::read_to_string(self.path("b")).expect("read");
            assert_eq!(read.trim_end(), b);
        }
    }

    #[test]
    fn the_last_one_puts_everything_back() {
        let panel = Panel::new();
        let (one, other) = (panel.sysctls(), panel.sysctls());
        let settings = [panel.setting("a", "1"), panel.setting("b", "50  ")];
        assert_eq!(one.override_settings(&settings).expect("hold"), []);
        panel.check("1", "50");
        assert_eq!(other.override_settings(&settings[..1]).expect("hold"), []);
        one.restore_if_last().expect("let go");
        panel.check("1", "50");
        other.restore_if_last().expect("let go");
        panel.check("0", "1000");
    }

    #[test]
    fn what_the_killed_left_is_put_back_by_the_next() {
        let panel = Panel::new();
        let killed = panel.sysctls();
        killed
            .override_settings(&[panel.setting("a", "1")])
            .expect("hold");
        restore_stale(&panel.path("state"));
        panel.check("1", "1000");
        // Its lock goes with it.
        drop(killed);
        // The next holder keeps the oldest values.
        let next = panel.sysctls();
        next.override_settings(&[panel.setting("a", "3"), panel.setting("b", "2000")])
            .expect("hold");
        panel.check("3", "2000");
        drop(next);
        restore_stale(&panel.path("state"));
        panel.check("0", "1000");
    }

    #[test]
    fn what_does_not_exist_is_refused_and_never_made() {
        let panel = Panel::new();
        let sysctls = panel.sysctls();
        let missing = panel.setting("c", "1");
        let settings = [missing.clone(), panel.setting("a", "1")];
        assert_eq!(
            sysctls.override_settings(&settings).expect("hold"),
            [missing]
        );
        sysctls.restore_if_last().expect("let go");
        assert!(!panel.path("c").exists());
        panel.check("0", "1000");
    }

    #[test]
    fn a_torn_line_is_as_if_never_written() {
        let panel = Panel::new();
        let one = panel.sysctls();
        one.override_settings(&[panel.setting("a", "1")])
            .expect("hold");
        let mut state = fs::read(panel.path("state")).expect("state");
        // Killed in the middle of the next.
        state.extend(b"{\"path\":\"/etc/pass");
        fs::write(panel.path("state"), &state).expect("write");
        one.override_settings(&[panel.setting("b", "7   ")])
            .expect("hold");
        panel.check("1", "7");
        one.restore_if_last().expect("let go");
        panel.check("0", "1000");
        assert_eq!(fs::read(panel.path("state")).expect("state"), b"");
    }

    #[test]
    fn nobody_waits_for_one_who_was_stopped() {
        let panel = Panel::new();
        let (stopped, other) = (panel.sysctls(), panel.sysctls());
        stopped.take_turn().expect("turn");
        let refused = other.override_settings(&[panel.setting("a", "1")]);
        assert_eq!(refused.expect_err("taken").kind(), ErrorKind::TimedOut);
        panel.check("0", "1000");
        drop(stopped);
        assert_eq!(
            other
                .override_settings(&[panel.setting("a", "1")])
                .expect("hold"),
            []
        );
        other.restore_if_last().expect("let go");
        panel.check("0", "1000");
    }

    #[test]
    fn many_at_once() {
        let panel = Panel::new();
        let turn = || {
            for round in 0..50 {
                let sysctls = panel.sysctls();
                let settings = [panel.setting("a", "1"), panel.setting("b", "7   ")];
                assert_eq!(
                    sysctls
                        .override_settings(&settings[round % 2..])
                        .expect("hold"),
                    []
                );
                panel.check_b("7");
                sysctls.restore_if_last().expect("let go");
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| {
                scope.spawn(turn);
            });
        });
        panel.check("0", "1000");
    }

    #[test]
    fn a_state_of_somebody_else_is_refused() {
        use std::os::unix::fs::{symlink, PermissionsExt};
        let panel = Panel::new();
        let (state, path) = (panel.path("state"), |name| panel.path(name));
        let check = |what: &str| {
            assert!(SysctlOverrides::open(&state).is_err(), "{what}");
            restore_stale(&state);
            panel.check("0", "1000");
            fs::remove_file(&state).expect("remove");
        };
        let hostile = serde_json::to_string(&panel.setting("a", "666")).expect("json") + "\n";
        fs::write(path("elsewhere"), &hostile).expect("write");
        symlink(path("elsewhere"), &state).expect("link");
        check("a link");
        fs::hard_link(path("elsewhere"), &state).expect("link");
        check("a second name");
        nix::unistd::mkfifo(&state, nix::sys::stat::Mode::S_IRWXU).expect("fifo");
        check("a pipe");
        fs::write(&state, &hostile).expect("write");
        let open = fs::Permissions::from_mode(0o622);
        fs::set_permissions(&state, open).expect("permissions");
        check("writable by all");
        if nix::unistd::geteuid().is_root() {
            fs::write(&state, &hostile).expect("write");
            std::os::unix::fs::chown(&state, Some(65534), None).expect("chown");
            check("another owner");
        }
    }
}
