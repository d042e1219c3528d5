//! Room for the tables on a disk that is full of bursts.
use super::encode::encode;
use super::folder::{Stored, TableInfo};
use super::tables::Table;
use super::write::{tables, Each, RESERVE};
use crate::bursts::{Bursts, FILE as BURSTS};
use crate::meta::BurstInfo;
use crate::Profile;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Files take whole blocks; so does the folder.
const BLOCK: u64 = 4096;

/// Gives up the end of the bursts in a folder, as much as the rest of the profile needs.
pub(super) fn cut(profile: &mut Profile, folder: &Path) {
    let path = folder.join(BURSTS);
    let had = path.metadata().map_or(0, |file| file.len());
    let left = had.saturating_sub(needed(profile));
    let file = OpenOptions::new().write(true).open(&path);
    let cut = file.and_then(|file| file.set_len(left));
    let bursts = cut.ok().and_then(|()| Bursts::open(folder).ok().flatten());
    let Some(bursts) = bursts.filter(|bursts| bursts.accesses() > 0) else {
        return give_up(profile, folder);
    };
    profile.meta.bursts = Some(BurstInfo {
        windows: bursts.windows().len() as u64,
        accesses: bursts.accesses(),
        bytes: left,
    });
    let what = format!(
        "The last {} of {had} bytes of the bursts were given up: there was no room on the disk for them and the tables.",
        had - left
    );
    profile.meta.limits.push(what);
}

/// Gives up all of them.
pub(super) fn give_up(profile: &mut Profile, folder: &Path) {
    if fs::remove_file(folder.join(BURSTS)).is_err() {
        return;
    }
    profile.meta.bursts = None;
    let what = "The bursts were given up: there was no room on the disk for them and the tables.";
    profile.meta.limits.push(what.to_owned());
}

/// Bytes that `profile.json` and the tables take on a disk.
fn needed(profile: &Profile) -> u64 {
    let mut size = Size {
        bytes: BLOCK,
        tables: BTreeMap::new(),
    };
    tables(profile, &mut size);
    let json = Stored {
        meta: profile.meta.clone(),
        tables: size.tables,
    };
    let json = serde_json::to_vec_pretty(&json).map_or(0, |json| json.len() + RESERVE);
    size.bytes + blocks(json as u64)
}

fn blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK)
}

struct Size {
    bytes: u64,
    tables: BTreeMap<String, TableInfo>,
}

impl Each for Size {
    fn add<T: Table>(&mut self, rows: &[T]) {
        let mut count = Count(0);
        if encode(rows, &mut count).is_ok() {
            self.bytes += blocks(count.0);
            let info = TableInfo { rows: rows.len() };
            self.tables.insert(T::NAME.to_string(), info);
        }
    }
}

/// Where bytes are only counted.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
