//! Room for the tables on a disk that is full of bursts.
use super::columns::TableRow;
use super::encode::{encode_table, TableRows};
use super::profile_json::{ProfileJson, TableInfo};
use super::staging::StagingFolder;
use super::visit_tables::{visit_tables, TableVisitor, JSON_RESERVE};
use crate::bursts::{BurstTrace, BURSTS_FILE as BURSTS};
use crate::meta::BurstInfo;
use crate::Profile;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Files take whole blocks; so does the folder.
const FS_BLOCK_SIZE: u64 = 4096;

/// Gives up the end of the bursts in a folder, as much as the rest of the profile needs.
pub(super) fn trim_bursts(profile: &mut Profile, folder: &StagingFolder) {
    let had = folder.size_of(BURSTS);
    let left = had.saturating_sub(bytes_needed(profile));
    let cut = folder.open(BURSTS).and_then(|file| {
        file.set_len(left)?;
        Ok(file)
    });
    let bursts = cut
        .ok()
        .and_then(|file| BurstTrace::of_file(file, BURSTS.into()).ok());
    let Some(bursts) = bursts.filter(|bursts| bursts.accesses() > 0) else {
        return drop_bursts(profile, folder);
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
pub(super) fn drop_bursts(profile: &mut Profile, folder: &StagingFolder) {
    if folder.remove(BURSTS).is_err() {
        return;
    }
    profile.meta.bursts = None;
    let what = "The bursts were given up: there was no room on the disk for them and the tables.";
    profile.meta.limits.push(what.to_owned());
}

/// Bytes that `profile.json` and the tables take on a disk.
fn bytes_needed(profile: &Profile) -> u64 {
    let mut size = SizeCounter {
        bytes: FS_BLOCK_SIZE,
        tables: BTreeMap::new(),
    };
    visit_tables(profile, &mut size);
    let json = ProfileJson {
        meta: profile.meta.clone(),
        tables: size.tables,
    };
    let json = serde_json::to_vec_pretty(&json).map_or(0, |json| json.len() + JSON_RESERVE);
    size.bytes + round_to_blocks(json as u64)
}

fn round_to_blocks(bytes: u64) -> u64 {
    bytes.next_multiple_of(FS_BLOCK_SIZE)
}

struct SizeCounter {
    bytes: u64,
    tables: BTreeMap<String, TableInfo>,
}

impl TableVisitor for SizeCounter {
    fn add<T: TableRow>(&mut self, rows: &dyn TableRows<T>) {
        if let Some(bytes) = count_bytes(rows) {
            self.bytes += round_to_blocks(bytes);
            let info = TableInfo { rows: rows.count() };
            self.tables.insert(T::NAME.to_string(), info);
        }
    }
}

/// Bytes of a table's file; 0 where it cannot be written.
pub(crate) fn encoded_bytes<T: TableRow>(rows: &dyn TableRows<T>) -> u64 {
    count_bytes(rows).unwrap_or(0)
}

fn count_bytes<T: TableRow>(rows: &dyn TableRows<T>) -> Option<u64> {
    let mut count = ByteCounter(0);
    encode_table(rows, &mut count).ok().map(|()| count.0)
}

/// Where bytes are only counted.
struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
