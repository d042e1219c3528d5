//! Source lines of code that accesses data: for a function of a library, the line of the program
//! that called it is the one that people can change.
use super::regions::RegionMap;
use crate::trace::symbolizer::{SourceLine, Symbolizer};
use hither_sys::Segment;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Code by (region of its file, ELF address).
type CodeAddress = Option<(u32, u64)>;

/// Code, and the program's call that led to it where it is in a library of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodePlace {
    pub code: CodeAddress,
    pub caller: CodeAddress,
}

impl CodePlace {
    /// Where a code site of the tracer is.
    pub fn of_site(site: u32, segment: &Segment, regions: &mut RegionMap) -> CodePlace {
        CodePlace::of_access(site, 0, segment, regions)
    }

    /// Where an instruction is that comes so many bytes after the one of a site.
    pub fn of_access(
        site: u32,
        after: i16,
        segment: &Segment,
        regions: &mut RegionMap,
    ) -> CodePlace {
        let record = segment.site(site);
        let mut find = |pc: u64| regions.locate_code(record.process, pc, Some(record.generation));
        CodePlace {
            code: find(record.pc.wrapping_add_signed(after.into())),
            // The call is before the address that it returns to.
            caller: record.caller.checked_sub(1).and_then(&mut find),
        }
    }

    /// The line of the program that does the access, or calls what does. `None` if neither is in
    /// the program's own source.
    pub fn program_line(
        self,
        regions: &RegionMap,
        naming: &mut dyn Symbolizer,
    ) -> Option<SourceLine> {
        let (file, vaddr) = resolve(self.code, regions)?;
        if let Some(own) = naming.program_line(&file, vaddr) {
            return Some(own);
        }
        let (program, call) = resolve(self.caller, regions)?;
        let library = || file.file_name().map(|n| n.to_string_lossy().into_owned());
        let callee = naming.source_line(&file, vaddr).map(|l| l.function);
        let callee = callee.filter(|name| !name.is_empty()).or_else(library);
        Some(SourceLine {
            callee: plain_function(&callee.unwrap_or_default()).to_owned(),
            ..naming.program_line(&program, call)?
        })
    }

    /// That line, else the code's own, else its file.
    pub fn source_line(self, regions: &RegionMap, naming: &mut dyn Symbolizer) -> SourceLine {
        if let Some(line) = self.program_line(regions, naming) {
            return line;
        }
        let Some((file, vaddr)) = resolve(self.code, regions) else {
            return SourceLine::default();
        };
        let known = naming.source_line(&file, vaddr);
        known.unwrap_or_else(|| SourceLine {
            file: file.to_string_lossy().into_owned(),
            ..SourceLine::default()
        })
    }
}

/// The lines of all of these will be asked for.
pub fn expect_lines<'a>(
    places: impl Iterator<Item = &'a CodePlace>,
    regions: &RegionMap,
    naming: &mut dyn Symbolizer,
) {
    let mut by_file: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (region, vaddr) in places.flat_map(|p| [p.code, p.caller]).flatten() {
        if let Some(known) = regions.all.get(region as usize) {
            by_file.entry(&known.region.file).or_default().insert(vaddr);
        }
    }
    for (file, vaddrs) in by_file {
        naming.expect_lines(Path::new(file), &Vec::from_iter(vaddrs));
    }
}

fn resolve(code: CodeAddress, regions: &RegionMap) -> Option<(PathBuf, u64)> {
    let (region, vaddr) = code?;
    let file = &regions.all.get(region as usize)?.region.file;
    Some((PathBuf::from(file), vaddr))
}

/// A library's function as people call it: `memset` for `__memset_avx2_unaligned_erms`.
fn plain_function(name: &str) -> &str {
    let plain = name.trim_start_matches('_');
    let variant = ["_avx", "_sse", "_evex", "_erms", "_unaligned"];
    let end = variant.iter().filter_map(|v| plain.find(v)).min();
    match end {
        Some(end) => &plain[..end],
        None => name,
    }
}
