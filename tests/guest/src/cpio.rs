//! The archive format "newc" of cpio: the kernel unpacks its first root from one, and the
//! guest sends its result files in one. Each entry is a header of 110 characters, the
//! name, the data; name and data are padded to a multiple of four bytes.
use std::io::{self, Write};

const MAGIC: &[u8] = b"070701";
const HEADER: usize = 110;
const LAST: &[u8] = b"TRAILER!!!";
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
pub const FOLDER: u32 = 0o040_000;
pub const LINK: u32 = 0o120_000;
pub const FILE: u32 = REGULAR;

/// What the header of an entry says, as far as it is used here.
pub struct CpioHeader<'a> {
    /// Without a leading slash.
    pub name: &'a [u8],
    /// Kind and permissions, as in `st_mode`.
    pub mode: u32,
    /// Seconds since 1970.
    pub modified: u32,
}

pub struct CpioWriter<W: Write> {
    to: W,
    entries: u32,
}

impl<W: Write> CpioWriter<W> {
    pub fn new(to: W) -> Self {
        CpioWriter { to, entries: 0 }
    }

    pub fn entry(&mut self, head: &CpioHeader, data: &[u8]) -> io::Result<()> {
        self.entries += 1;
        let size = u32::try_from(data.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let name_size =
            u32::try_from(head.name.len() + 1).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.to.write_all(MAGIC)?;
        // Inode, mode, owner, group, links, time, size, four device numbers, name, checksum.
        let (inode, mode, time) = (self.entries, head.mode, head.modified);
        for field in [inode, mode, 0, 0, 1, time, size, 0, 0, 0, 0, name_size, 0] {
            write!(self.to, "{field:08X}")?;
        }
        self.to.write_all(head.name)?;
        self.to.write_all(&[0])?;
        self.pad(HEADER + head.name.len() + 1)?;
        self.to.write_all(data)?;
        self.pad(data.len())
    }

    /// Marks the end; without it the kernel takes the archive for cut off.
    pub fn finish(mut self) -> io::Result<W> {
        let (name, mode, modified) = (LAST, 0, 0);
        let head = CpioHeader {
            name,
            mode,
            modified,
        };
        self.entry(&head, &[])?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn pad(&mut self, written: usize) -> io::Result<()> {
        self.to.write_all(&[0; 3][..padding(written)])
    }
}

fn padding(written: usize) -> usize {
    written.next_multiple_of(4) - written
}

/// The regular files of an archive, by name as it stands there; folders, links and
/// devices are passed over. `None` if the archive is damaged or cut off.
pub fn regular_files(archive: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut at = 0;
    loop {
        let header = archive.get(at..at + HEADER)?;
        if &header[..6] != MAGIC {
            return None;
        }
        let field = |n: usize| {
            let digits = std::str::from_utf8(&header[6 + 8 * n..][..8]).ok()?;
            u32::from_str_radix(digits, 16).ok()
        };
        let (mode, size, name_size) = (field(1)?, field(6)? as usize, field(11)? as usize);
        let name = archive.get(at + HEADER..)?.get(..name_size)?;
        let name = name.strip_suffix(&[0])?;
        if name == LAST {
            return Some(files);
        }
        let start = (at + HEADER + name_size).next_multiple_of(4);
        let data = archive.get(start..)?.get(..size)?;
        if mode & KIND == REGULAR {
            files.push((String::from_utf8_lossy(name).into_owned(), data.to_vec()));
        }
        at = (start + size).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
        let mut writer = CpioWriter::new(Vec::new());
        for (name, mode, data) in entries {
            let head = CpioHeader {
                name: name.as_bytes(),
                mode: *mode,
                modified: 7,
            };
            writer.entry(&head, data).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn files_of_all_lengths_come_back_and_nothing_else() {
        let entries: [(&str, u32, &[u8]); 5] = [
            ("d", FOLDER | 0o755, b""),
            ("d/empty", FILE | 0o644, b""),
            ("d/link", LINK | 0o777, b"empty"),
            ("d/odd", FILE | 0o644, b"12345"),
            ("TRAILER", FILE | 0o600, b"\0TRAILER!!!\0"),
        ];
        let read = regular_files(&archive(&entries)).unwrap();
        let expected = [entries[1], entries[3], entries[4]];
        assert_eq!(read.len(), expected.len());
        for ((name, data), (expected_name, _, expected_data)) in read.iter().zip(expected) {
            assert_eq!((name.as_str(), &data[..]), (expected_name, expected_data));
        }
    }

    #[test]
    fn busybox_reads_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.cpio");
        std::fs::write(&file, archive(&[("name", FILE | 0o640, b"data\n")])).unwrap();
        let listing = std::process::Command::new("busybox")
            .args(["cpio", "-tv", "-F"])
            .arg(&file)
            .output();
        let Ok(listing) = listing else {
            eprintln!("skipped busybox_reads_what_is_written: busybox is not installed");
            return;
        };
        let text = String::from_utf8_lossy(&listing.stdout);
        assert!(
            text.contains("-rw-r-----") && text.contains(" 5 "),
            "{text}"
        );
    }

    #[test]
    fn a_cut_archive_is_no_archive() {
        let whole = archive(&[("name", FILE, b"some data")]);
        for length in 0..whole.len() - 4 {
            assert!(regular_files(&whole[..length]).is_none(), "{length}");
        }
    }
}
