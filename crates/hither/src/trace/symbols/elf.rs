//! One ELF file: symbols, debug sections, and how to find its separate debug file.
//!
//! Files are not trusted: regular files only, sizes bounded, nothing mapped
//! (a mapped file that shrinks kills the reader).
use crate::trace::symbolizer::StaticObject;
use hither_profile::open_regular_file;
use miniz_oxide::inflate::decompress_slice_iter_to_slice;
use object::read::{CompressedData, CompressedFileRange, CompressionFormat};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SectionKind};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::iter::{once, repeat_n};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Read in one piece below this, piece by piece above.
const READ_WHOLE_BELOW: u64 = 64 << 20;
const MAX_FILE: u64 = 16 << 30;
const MAX_SECTION: u64 = 4 << 30;
/// zlib cannot expand more than 1032 times.
const MAX_EXPANSION: u64 = 1100;
const MAX_SYMBOLS: usize = 8 << 20;
const MAX_SECTIONS: usize = 1 << 16;
/// Larger than anything a 47-bit address space holds as one variable.
const MAX_OBJECT: u64 = 1 << 46;

/// The largest first: while a section is expanded it takes twice its size.
const DEBUG_SECTIONS: [&str; 11] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_addr",
    ".debug_aranges",
    ".debug_line",
    ".debug_line_str",
    ".debug_str",
    ".debug_str_offsets",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_types",
];

#[derive(Clone, Debug, PartialEq)]
pub struct ElfSymbol {
    /// As the linker knows it.
    pub raw: String,
    pub vaddr: u64,
    pub size: u64,
}

/// Name of a debug section and where it is in the file.
type SectionRange = (&'static str, CompressedFileRange);

/// What of an ELF file is kept once it is read.
#[derive(Default)]
pub struct ElfImage {
    pub little_endian: bool,
    /// The address ranges of its loadable segments.
    pub loads: Vec<Range<u64>>,
    /// Bytes of the block of thread-local variables that each thread has.
    pub thread_locals: u64,
    /// Where sections with code begin, sorted.
    pub code_sections: Vec<u64>,
    /// Sorted by address.
    pub functions: Vec<ElfSymbol>,
    /// Sorted by address.
    pub objects: Vec<ElfSymbol>,
    pub build_id: Option<Vec<u8>>,
    /// File name and CRC-32 in `.gnu_debuglink`.
    pub debug_link: Option<(String, u32)>,
    pub sections: HashMap<&'static str, Arc<[u8]>>,
}

impl ElfImage {
    /// `None` if the file cannot be read or is not ELF.
    pub fn open(path: &Path) -> Option<ElfImage> {
        let (mut file, len) = open_regular(path, MAX_FILE).ok()?;
        let (mut elf, ranges) = if len <= READ_WHOLE_BELOW {
            let mut bytes = Vec::with_capacity(len as usize);
            file.by_ref()
                .take(READ_WHOLE_BELOW)
                .read_to_end(&mut bytes)
                .ok()?;
            Self::parse(bytes.as_slice())?
        } else {
            Self::parse(&ReadCache::new(&file))?
        };
        // Only now that the file itself is no longer in memory.
        for (name, range) in ranges {
            if let Some(bytes) = read_section(&file, range) {
                elf.sections.insert(name, bytes);
            }
        }
        Some(elf)
    }

    /// All but the debug sections, and where these are.
    fn parse<'data, R: ReadRef<'data>>(data: R) -> Option<(ElfImage, Vec<SectionRange>)> {
        let file = object::File::parse(data).ok()?;
        if file.format() != object::BinaryFormat::Elf {
            return None;
        }
        let mut elf =
            ElfImage {
                little_endian: file.is_little_endian(),
                build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
                debug_link: file.gnu_debuglink().ok().flatten().and_then(|(name, crc)| {
                    Some((std::str::from_utf8(name).ok()?.to_owned(), crc))
                }),
                ..ElfImage::default()
            };
        elf.loads = file
            .segments()
            .filter_map(|s| Some(s.address()..s.address().checked_add(s.size())?))
            .take(1024)
            .collect();
        elf.thread_locals = thread_local_bytes(&file);
        let code = file.sections().filter(|s| s.kind() == SectionKind::Text);
        elf.code_sections = code.map(|s| s.address()).take(MAX_SECTIONS).collect();
        elf.code_sections.sort_unstable();
        elf.read_symbols(&file);
        let ranges = DEBUG_SECTIONS.iter().filter_map(|&name| {
            // `section_by_name` also finds the older `.zdebug_` names.
            let section = file.section_by_name(name)?;
            Some((name, section.compressed_file_range().ok()?))
        });
        let ranges = ranges.collect();
        Some((elf, ranges))
    }

    pub fn has_dwarf(&self) -> bool {
        self.sections.contains_key(".debug_info") && self.sections.contains_key(".debug_abbrev")
    }

    /// Whether `size` bytes at `vaddr` are part of the loaded program, or of each thread's block.
    pub fn is_loaded(&self, vaddr: u64, size: u64) -> bool {
        let end = vaddr.saturating_add(size.max(1));
        if let Some(end) = end.checked_sub(StaticObject::THREAD_LOCAL) {
            return vaddr >= StaticObject::THREAD_LOCAL && end <= self.thread_locals;
        }
        vaddr != 0 && self.loads.iter().any(|l| l.start <= vaddr && end <= l.end)
    }

    pub fn object_at(&self, vaddr: u64) -> Option<&ElfSymbol> {
        let at = self.objects.partition_point(|s| s.vaddr < vaddr);
        self.objects.get(at).filter(|s| s.vaddr == vaddr)
    }

    /// The function that holds `vaddr`; one without a size reaches 64 KiB at most, and not into the next section: what
    /// follows `_init` there is the entries of the PLT.
    pub fn function_at(&self, vaddr: u64) -> Option<&ElfSymbol> {
        const MAX_UNSIZED: u64 = 1 << 16;
        let at = self.functions.partition_point(|s| s.vaddr <= vaddr);
        let found = self.functions.get(at.checked_sub(1)?)?;
        if found.size > 0 {
            return (vaddr - found.vaddr < found.size).then_some(found);
        }
        let section = |of: u64| self.code_sections.partition_point(|start| *start <= of);
        let within = section(vaddr) == section(found.vaddr);
        (within && vaddr - found.vaddr < MAX_UNSIZED).then_some(found)
    }

    /// Takes over what a separate debug file has and this one lacks.
    pub fn add_debug_file(&mut self, debug: ElfImage) {
        if debug.functions.len() > self.functions.len() {
            self.functions = debug.functions;
        }
        if debug.objects.len() > self.objects.len() {
            self.objects = debug.objects;
        }
        self.sections = debug.sections;
        self.little_endian = debug.little_endian;
    }

    fn read_symbols<'data, R: ReadRef<'data>>(&mut self, file: &object::File<'data, R>) {
        let mut any = false;
        for symbol in file.symbols().take(MAX_SYMBOLS) {
            any = true;
            self.add_symbol(&symbol);
        }
        if !any {
            for symbol in file.dynamic_symbols().take(MAX_SYMBOLS) {
                self.add_symbol(&symbol);
            }
        }
        for list in [&mut self.functions, &mut self.objects] {
            // Of several names for one address the plainest: fewest underscores in
            // front, then the shortest.
            list.sort_by_cached_key(|s| {
                let underscores = s.raw.len() - s.raw.trim_start_matches('_').len();
                (s.vaddr, underscores, s.raw.len(), s.raw.clone())
            });
        }
        self.objects.dedup_by_key(|s| s.vaddr);
    }

    fn add_symbol<'data>(&mut self, symbol: &impl ObjectSymbol<'data>) {
        let list = match symbol.kind() {
            object::SymbolKind::Text => &mut self.functions,
            object::SymbolKind::Data | object::SymbolKind::Tls
                if (1..MAX_OBJECT).contains(&symbol.size()) =>
            {
                &mut self.objects
            }
            _ => return,
        };
        let vaddr = match symbol.kind() {
            object::SymbolKind::Tls => symbol.address().saturating_add(StaticObject::THREAD_LOCAL),
            _ => symbol.address(),
        };
        if symbol.is_undefined() || vaddr == 0 {
            return;
        }
        let Ok(raw) = symbol.name() else { return };
        if !raw.is_empty() && !is_constant_of_llvm(raw) {
            list.push(ElfSymbol {
                raw: raw.to_owned(),
                vaddr,
                size: symbol.size(),
            });
        }
    }
}

fn thread_local_bytes<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> u64 {
    let kinds = [SectionKind::Tls, SectionKind::UninitializedTls];
    let sections = file.sections().filter(|s| kinds.contains(&s.kind()));
    let ranges = sections.map(|s| (s.address(), s.address().saturating_add(s.size())));
    let block = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    block.map_or(0, |(start, end)| end - start)
}

/// `anon.<hash>.7.llvm.42`: constants without a name of which LLVM moved code to another unit.
fn is_constant_of_llvm(raw: &str) -> bool {
    let hash = raw.strip_prefix("anon.").and_then(|r| r.split('.').next());
    hash.is_some_and(|h| h.len() == 32 && h.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The bytes of a section, expanded.
fn read_section(file: &File, range: CompressedFileRange) -> Option<Arc<[u8]>> {
    let bound = range.compressed_size.saturating_mul(MAX_EXPANSION);
    let in_file = range.offset.checked_add(range.compressed_size)? <= file.metadata().ok()?.len();
    if !in_file || range.uncompressed_size > MAX_SECTION.min(bound) {
        return None;
    }
    let mut bytes: Arc<[u8]> = repeat_n(0, range.compressed_size as usize).collect();
    file.read_exact_at(Arc::get_mut(&mut bytes)?, range.offset)
        .ok()?;
    if range.format == CompressionFormat::None {
        return Some(bytes);
    }
    if range.format == CompressionFormat::Zlib {
        let mut expanded: Arc<[u8]> = repeat_n(0, range.uncompressed_size as usize).collect();
        let room = Arc::get_mut(&mut expanded)?;
        let length = decompress_slice_iter_to_slice(room, once(&bytes[..]), true, false).ok()?;
        return (length == expanded.len()).then_some(expanded);
    }
    let compressed = CompressedData {
        format: range.format,
        data: &bytes,
        uncompressed_size: range.uncompressed_size,
    };
    Some(compressed.decompress().ok()?.into())
}

/// Whether a file is an executable with addresses of its own (ET_EXEC).
pub fn has_fixed_address(path: &Path) -> bool {
    let mut head = [0; 18];
    let read = open_regular_file(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head[..4] == *b"\x7fELF" && head[16..18] == [2, 0]
}

/// Opens a regular file of at most `max` bytes; never a pipe or device.
pub fn open_regular(path: &Path, max: u64) -> io::Result<(File, u64)> {
    let file = open_regular_file(path)?;
    let length = file.metadata()?.len();
    match length > max {
        true => Err(io::ErrorKind::InvalidInput.into()),
        false => Ok((file, length)),
    }
}
