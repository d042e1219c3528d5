//! Where root may write: only where no other user can put a link, or something else of theirs,
//! in the place of what root means. In sticky folders such as /tmp nobody replaces what is
//! root's. The user who called sudo is trusted: they are root as they like.
use std::fs::{symlink_metadata, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

const WRITABLE_BY_ALL: u32 = 0o002;
const WRITABLE_BY_GROUP: u32 = 0o020;
const STICKY: u32 = 0o1000;
/// What statfs(2) calls file systems that programs serve.
const FUSE_SUPER_MAGIC: rustix::fs::FsWord = 0x6573_5546;

/// An error with a sentence where we are root and another user can change what `path` names.
pub fn check_output_path(path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() || in_user_namespace() {
        return Ok(());
    }
    let path = std::path::absolute(path)?;
    check_chain(&path)?;
    // What links on the way lead to.
    let parent = path.parent().unwrap_or(&path);
    let real = path.canonicalize().or_else(|_| parent.canonicalize());
    real.map_or(Ok(()), |real| check_chain(&real))
}

/// There root has no rights over what is not its user's, and strangers' files all look alike.
fn in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let mut words = map.split_whitespace();
    let all = ["0", "0", "4294967295"];
    !map.is_empty() && !all.iter().all(|word| words.next() == Some(word))
}

fn check_chain(path: &Path) -> io::Result<()> {
    let mut parts: Vec<&Path> = path.ancestors().collect();
    parts.reverse();
    for part in parts {
        let Ok(data) = symlink_metadata(part) else {
            // Not there yet, or no part of a file system, as a pipe in /proc/self/fd.
            return Ok(());
        };
        if let Some(who) = stranger_serving(part, &data).or_else(|| who_may_change(&data)) {
            let what = match data.is_dir() {
                true => "the folder ",
                false => "",
            };
            return Err(io::Error::other(format!(
                "{what}{} {who}, who could make root write elsewhere; choose a place that only root can write, or run as that user",
                part.display()
            )));
        }
    }
    Ok(())
}

/// Whether an id is root's, or that of who called sudo, which tells it in a variable.
fn is_trusted(id: u32, variable: &str) -> bool {
    let caller = std::env::var(variable).ok().and_then(|id| id.parse().ok());
    id == 0 || caller == Some(id)
}

/// The stranger whose program serves the file system (FUSE) that something lies on: it makes up
/// owners and permissions as it likes. `None`: the kernel or somebody trusted does.
fn stranger_serving(path: &Path, data: &Metadata) -> Option<String> {
    // Of a link this would tell what it leads to, which is checked itself.
    if data.is_symlink() || rustix::fs::statfs(path).ok()?.f_type != FUSE_SUPER_MAGIC {
        return None;
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match fuse_user(&mounts, data.dev()) {
        Some(user) if is_trusted(user, "SUDO_UID") => None,
        Some(user) => Some(format!("is served by a program of user {user}")),
        None => {
            Some("is served by a program of a user unknown in this mount name space".to_owned())
        }
    }
}

/// Who mounted a device, if that is FUSE: `36 35 0:52 / /mnt rw - fuse.name source rw,user_id=1000`.
fn fuse_user(mountinfo: &str, device: u64) -> Option<u32> {
    let device = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let mount = mountinfo
        .lines()
        .find(|line| line.split(' ').nth(2) == Some(&device))?;
    let (_, kind) = mount.split_once(" - ")?;
    let options = kind
        .starts_with("fuse")
        .then(|| kind.rsplit(' ').next())??;
    options
        .split(',')
        .find_map(|option| option.strip_prefix("user_id=")?.parse().ok())
}

/// Who but root may replace something or what is in it; `None`: nobody.
fn who_may_change(data: &Metadata) -> Option<String> {
    let kind = data.file_type();
    if kind.is_char_device() || kind.is_block_device() {
        return None;
    }
    if !is_trusted(data.uid(), "SUDO_UID") {
        return Some(format!("belongs to user {}", data.uid()));
    }
    if !data.is_dir() || data.mode() & STICKY != 0 {
        return None;
    }
    if data.mode() & WRITABLE_BY_ALL != 0 {
        return Some("can be written by every user".to_owned());
    }
    let group = data.mode() & WRITABLE_BY_GROUP != 0 && !is_trusted(data.gid(), "SUDO_GID");
    group.then(|| format!("can be written by the group {}", data.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_serves_a_file_system() {
        let mounts = "36 35 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,user_id=7\n\
            40 36 0:52 / /mnt/with\\040space rw,nosuid master:2 - fuse.sshfs host:/a,b rw,user_id=1000,group_id=1000,allow_other\n\
            41 36 0:53 / /sys/fs/fuse rw - fusectl none rw\n";
        let at = |major, minor| fuse_user(mounts, rustix::fs::makedev(major, minor));
        assert_eq!(at(0, 52), Some(1000));
        assert_eq!((at(8, 1), at(0, 53), at(0, 99)), (None, None, None));
    }
}
