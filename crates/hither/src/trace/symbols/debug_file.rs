//! Where the debug information of a stripped file is: by build-id under
//! /usr/lib/debug, else by the name in `.gnu_debuglink`, as gdb looks.
use super::elf::{open_regular, ElfImage};
use std::io::Read;
use std::path::{Path, PathBuf};

const ROOT: &str = "/usr/lib/debug";
const MAX_FILE: u64 = 16 << 30;

/// Adds the debug sections and symbols of a separate file, if `elf` needs and has one.
pub fn add_separate_debug(path: &Path, elf: &mut ElfImage) {
    if elf.has_dwarf() {
        return;
    }
    for candidate in debug_file_candidates(path, elf) {
        if let Some(debug) = open_if_matching(&candidate, elf) {
            elf.add_debug_file(debug);
            return;
        }
    }
}

fn debug_file_candidates(path: &Path, elf: &ElfImage) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some([first, rest @ ..]) = elf.build_id.as_deref() {
        if !rest.is_empty() && rest.len() <= 64 {
            let rest: String = rest.iter().map(|b| format!("{b:02x}")).collect();
            found.push(format!("{ROOT}/.build-id/{first:02x}/{rest}.debug").into());
        }
    }
    // Only the name: a link that points elsewhere is not followed.
    let link = elf.debug_link.as_ref().map(|(name, _)| name.as_str());
    let link = link.filter(|n| !n.is_empty() && !n.contains('/') && *n != "." && *n != "..");
    let real = path.canonicalize().ok();
    if let (Some(name), Some(dir)) = (link, real.as_deref().and_then(Path::parent)) {
        found.push(dir.join(name));
        found.push(dir.join(".debug").join(name));
        let below = dir.strip_prefix("/").unwrap_or(dir);
        found.push(Path::new(ROOT).join(below).join(name));
    }
    // A file that links to itself has nothing to add.
    found.retain(|f| f.canonicalize().ok() != real);
    found
}

/// The file, if it was split from this very program.
fn open_if_matching(path: &Path, elf: &ElfImage) -> Option<ElfImage> {
    let debug = ElfImage::open(path).filter(ElfImage::has_dwarf)?;
    let same = match (&elf.build_id, &debug.build_id) {
        (Some(a), Some(b)) => a == b,
        _ => elf.debug_link.as_ref().map(|link| link.1) == crc32(path),
    };
    same.then_some(debug)
}

/// CRC-32 of IEEE 802.3 over the file, which `.gnu_debuglink` records.
fn crc32(path: &Path) -> Option<u32> {
    let (mut file, _) = open_regular(path, MAX_FILE).ok()?;
    let mut table = [0u32; 256];
    for (i, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(i as u32, |c, _| (c >> 1) ^ (0xedb8_8320 * (c & 1)));
    }
    let mut crc = !0u32;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut buffer).ok()?;
        if n == 0 {
            return Some(!crc);
        }
        for byte in &buffer[..n] {
            crc = (crc >> 8) ^ table[usize::from(crc as u8 ^ byte)];
        }
    }
}
