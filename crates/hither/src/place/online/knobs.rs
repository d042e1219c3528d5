//! Settings of the whole system that are changed for a run and put back after it, even if
//! hither is killed.
//!
//! The values from before are kept in a file (the state) as long as anybody needs the
//! changed ones; every hither that does holds a shared lock on it, through its guardian (see
//! `guardian.rs`), which outlives it. Who is last puts the values back and empties the file.
//! If even the guardian was killed, the next hither that looks does so.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where the state is kept: only root can change such settings, and only root write there.
pub const STATE: &str = "/run/hither-sysctl.json";

/// A file of /proc/sys or debugfs and what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting {
    pub path: PathBuf,
    pub value: String,
}

/// Access to the state.
#[derive(Debug)]
pub struct Knobs {
    state: File,
}

impl Knobs {
    /// # Errors
    /// When the state cannot be written.
    pub fn open(path: &Path) -> io::Result<Knobs> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let state = options.mode(0o600).custom_flags(nix::libc::O_NOFOLLOW);
        Ok(Knobs {
            state: state.open(path)?,
        })
    }

    /// The descriptor that the lock belongs to.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.state
    }

    /// Makes settings until [`Knobs::let_go`]. Those that cannot be made are returned.
    ///
    /// # Errors
    /// When the state cannot be locked, read or written; then nothing was changed.
    pub fn hold(&self, settings: &[Setting]) -> io::Result<Vec<Setting>> {
        self.state.lock()?;
        let mut before = self.before();
        for setting in settings {
            if before.iter().any(|known| known.path == setting.path) {
                continue;
            }
            if let Ok(value) = fs::read_to_string(&setting.path) {
                let value = value.trim_end().to_owned();
                before.push(Setting {
                    value,
                    ..setting.clone()
                });
            }
        }
        self.keep(&before)?;
        let refused = settings.iter().filter(|s| set(s).is_err()).cloned();
        let refused = refused.collect();
        self.state.lock_shared()?;
        Ok(refused)
    }

    /// Puts back what was before, unless another hither still needs it.
    ///
    /// # Errors
    /// When the state cannot be read or emptied.
    pub fn let_go(&self) -> io::Result<()> {
        match self.state.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(()),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        for setting in self.before() {
            // What is gone from the system needs no putting back.
            let _ = set(&setting);
        }
        self.state.set_len(0)?;
        self.state.unlock()
    }

    /// What the state says; a state that was not written to its end was followed by no change.
    fn before(&self) -> Vec<Setting> {
        let mut text = String::new();
        let mut state = &self.state;
        let read = state
            .rewind()
            .and_then(|()| state.read_to_string(&mut text));
        read.ok()
            .and_then(|_| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    fn keep(&self, before: &[Setting]) -> io::Result<()> {
        let text = serde_json::to_vec(before)?;
        let mut state = &self.state;
        state.set_len(0)?;
        state.rewind()?;
        state.write_all(&text)
    }
}

/// Makes one setting.
///
/// # Errors
/// As the kernel's.
pub fn set(setting: &Setting) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(&setting.path)?
        .write_all(setting.value.as_bytes())
}

/// Puts back what a hither and its guardian left behind that were both killed.
pub fn tidy(path: &Path) {
    if fs::metadata(path).is_ok_and(|state| state.len() > 0) {
        let _ = Knobs::open(path).and_then(|knobs| knobs.let_go());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with two knobs.
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

        fn knobs(&self) -> Knobs {
            Knobs::open(&self.path("state")).expect("state")
        }

        fn setting(&self, name: &str, value: &str) -> Setting {
            Setting {
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
    }

    #[test]
    fn the_last_one_puts_everything_back() {
        let panel = Panel::new();
        let (one, other) = (panel.knobs(), panel.knobs());
        let settings = [panel.setting("a", "1"), panel.setting("b", "50  ")];
        assert_eq!(one.hold(&settings).expect("hold"), []);
        panel.check("1", "50");
        assert_eq!(other.hold(&settings[..1]).expect("hold"), []);
        one.let_go().expect("let go");
        panel.check("1", "50");
        other.let_go().expect("let go");
        panel.check("0", "1000");
    }

    #[test]
    fn what_the_killed_left_is_put_back_by_the_next() {
        let panel = Panel::new();
        let killed = panel.knobs();
        killed.hold(&[panel.setting("a", "1")]).expect("hold");
        tidy(&panel.path("state"));
        panel.check("1", "1000");
        // Its lock goes with it.
        drop(killed);
        // One who holds anew keeps the oldest values.
        let next = panel.knobs();
        next.hold(&[panel.setting("a", "3"), panel.setting("b", "2000")])
            .expect("hold");
        panel.check("3", "2000");
        drop(next);
        tidy(&panel.path("state"));
        panel.check("0", "1000");
    }

    #[test]
    fn what_does_not_exist_is_refused_and_never_made() {
        let panel = Panel::new();
        let knobs = panel.knobs();
        let missing = panel.setting("c", "1");
        let settings = [missing.clone(), panel.setting("a", "1")];
        assert_eq!(knobs.hold(&settings).expect("hold"), [missing]);
        knobs.let_go().expect("let go");
        assert!(!panel.path("c").exists());
        panel.check("0", "1000");
    }
}
