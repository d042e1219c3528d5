//! The few fields of an ELF header that decide whether a program can be followed.
use hither_profile::PAGE_SIZE;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

pub const MAGIC: [u8; 4] = *b"\x7fELF";
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const MACHINE_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfHeader {
    class: u8,
    machine: u16,
    kind: u16,
    /// The dynamic linker it asks for.
    pub interpreter: Option<PathBuf>,
    /// Lowest address it is linked at, rounded down to a page: 0 when position-independent.
    pub base: u64,
}

impl ElfHeader {
    /// What it was built for, unless that is x86-64.
    #[must_use]
    pub fn foreign_machine(&self) -> Option<String> {
        let bits = if self.class == CLASS_64 { 64 } else { 32 };
        let family = match self.machine {
            MACHINE_X86_64 if bits == 64 => return None,
            3 | MACHINE_X86_64 => "x86",
            20 | 21 => "POWER",
            22 => "IBM Z",
            40 | 183 => "ARM",
            243 => "RISC-V",
            258 => "LoongArch",
            other => return Some(format!("another machine (ELF number {other})")),
        };
        Some(format!("{bits}-bit {family}"))
    }

    /// Whether it is an executable, as opposed to an object file or a core dump.
    #[must_use]
    pub fn is_executable(&self) -> bool {
        const EXECUTABLE: u16 = 2;
        const SHARED: u16 = 3;
        matches!(self.kind, EXECUTABLE | SHARED)
    }
}

/// Reads the header of `file`, and the program headers if they are 64-bit ones.
///
/// # Errors
/// When the file is no ELF file or ends early.
pub fn read_header(file: &File) -> io::Result<ElfHeader> {
    let mut h = [0; 64];
    let length = file.read_at(&mut h, 0)?;
    if length < 20 || h[..4] != MAGIC {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let half = |at: usize| match h[5] {
        LITTLE_ENDIAN => u16::from_le_bytes([h[at], h[at + 1]]),
        _ => u16::from_be_bytes([h[at], h[at + 1]]),
    };
    let mut elf = ElfHeader {
        class: h[4],
        machine: half(18),
        kind: half(16),
        interpreter: None,
        base: 0,
    };
    if elf.foreign_machine().is_some() {
        return Ok(elf);
    }
    if length < h.len() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    read_segments(file, &h, &mut elf)?;
    Ok(elf)
}

fn read_segments(file: &File, header: &[u8; 64], elf: &mut ElfHeader) -> io::Result<()> {
    let offset = u64_at(header, 32);
    let size = usize::from(u16::from_le_bytes([header[54], header[55]]));
    let count = usize::from(u16::from_le_bytes([header[56], header[57]]));
    if size < 56 {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut table = vec![0; size * count];
    file.read_exact_at(&mut table, offset)?;
    let mut base = None;
    for segment in table.chunks_exact(size) {
        let kind = u32::from_le_bytes([segment[0], segment[1], segment[2], segment[3]]);
        if kind == PT_LOAD {
            let start = u64_at(segment, 16) & !(PAGE_SIZE - 1);
            base = Some(base.map_or(start, |b: u64| b.min(start)));
        } else if kind == PT_INTERP {
            let length = usize::try_from(u64_at(segment, 32)).unwrap_or(0);
            let mut path = vec![0; length.min(PAGE_SIZE as usize)];
            file.read_exact_at(&mut path, u64_at(segment, 8))?;
            path.retain(|&b| b != 0);
            elf.interpreter = Some(std::ffi::OsString::from_vec(path).into());
        }
    }
    elf.base = base.unwrap_or(0);
    Ok(())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut w = [0; 8];
    w.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(w)
}
