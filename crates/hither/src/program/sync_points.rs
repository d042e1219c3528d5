//! Functions where threads wait for one another, and where they are in a file. The tracer
//! counts calls of them (`tracer/dynamorio/functions.c`), and so does `run` to follow
//! the progress of an untraced run: OPT 6.4.
use hither_profile::open_regular_file;
use hither_sys::wire;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadCache};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

/// Names of the kinds, in the order of [`hither_profile::Slice::sync`].
pub const SYNC_KINDS: [&str; wire::SYNCS] = [
    "pthread_barrier_wait",
    "OpenMP barriers",
    "OpenMP parallel regions",
    "MPI_Barrier",
];

const BARRIER: u32 = wire::SYNC_OMP_BARRIER;
const PARALLEL: u32 = wire::SYNC_OMP_PARALLEL;

/// Functions and their kinds, as in the tracer.
pub const SYNC_FUNCTIONS: [(&str, u32); 15] = [
    ("pthread_barrier_wait", wire::SYNC_PTHREAD_BARRIER),
    ("GOMP_barrier", BARRIER),
    ("GOMP_loop_end", BARRIER),
    ("GOMP_sections_end", BARRIER),
    ("GOMP_parallel", PARALLEL),
    ("GOMP_parallel_loop_static", PARALLEL),
    ("GOMP_parallel_loop_dynamic", PARALLEL),
    ("GOMP_parallel_loop_guided", PARALLEL),
    ("GOMP_parallel_loop_runtime", PARALLEL),
    ("GOMP_parallel_loop_nonmonotonic_dynamic", PARALLEL),
    ("GOMP_parallel_loop_nonmonotonic_guided", PARALLEL),
    ("GOMP_parallel_sections", PARALLEL),
    ("GOMP_parallel_reductions", PARALLEL),
    ("MPI_Barrier", wire::SYNC_MPI_BARRIER),
    ("mpi_barrier_", wire::SYNC_MPI_BARRIER),
];

const MAX_SYMBOLS: usize = 8 << 20;

/// A place in a file where threads synchronise. One for functions that are the same code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncPoint {
    /// `wire::SYNC_*`.
    pub kind: usize,
    /// Of its first instruction in the file.
    pub offset: u64,
    /// All names that this code is exported by.
    pub names: BTreeSet<String>,
    /// The file's own code calls it, or may: no other module has to import it.
    pub own: bool,
}

/// What a program or library has to do with synchronisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncPoints {
    pub points: Vec<SyncPoint>,
    /// Functions of other files that it calls.
    pub imports: BTreeSet<String>,
}

/// Reads the points that `path` defines and the functions that it imports. `program`: it
/// is what was executed, not a library. `None` if it cannot be read or is no 64-bit ELF file.
pub fn read_sync_points(path: &Path, program: bool) -> Option<SyncPoints> {
    let file = open_regular_file(path).ok()?;
    let cache = ReadCache::new(file);
    let elf: ElfFile64<Endianness, &ReadCache<File>> = ElfFile64::parse(&cache).ok()?;
    let endian = elf.endian();
    let headers = elf.elf_header().program_headers(endian, &cache).ok()?;
    let interpreted = headers
        .iter()
        .any(|h| h.p_type(endian) == object::elf::PT_INTERP);
    let offset_of = |address: u64| {
        headers.iter().find_map(|h| {
            let inside = address.checked_sub(h.p_vaddr(endian))?;
            let loaded = h.p_type(endian) == object::elf::PT_LOAD;
            (loaded && inside < h.p_filesz(endian)).then(|| h.p_offset(endian) + inside)
        })
    };
    // A static program exports nothing, so that only its own table of symbols tells.
    let is_static = program && !interpreted;
    let mut code: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    let mut found = SyncPoints::default();
    let symbols: Box<dyn Iterator<Item = _>> = if is_static {
        Box::new(elf.symbols())
    } else {
        Box::new(elf.dynamic_symbols())
    };
    for symbol in symbols.take(MAX_SYMBOLS) {
        let Ok(name) = symbol.name() else { continue };
        if symbol.is_undefined() {
            found.imports.insert(name.to_owned());
        } else if symbol.kind() == object::SymbolKind::Text {
            code.entry(symbol.address())
                .or_default()
                .insert(name.to_owned());
        }
    }
    for (address, names) in code {
        let known = SYNC_FUNCTIONS
            .iter()
            .find(|(name, _)| names.contains(*name));
        if let Some(((_, kind), offset)) = known.zip(offset_of(address)) {
            found.points.push(SyncPoint {
                kind: *kind as usize,
                offset,
                names,
                own: program,
            });
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of the tracer, from its source.
    #[test]
    fn the_functions_are_those_of_the_tracer() {
        let source = include_str!("../../../../tracer/dynamorio/functions.c");
        let list = source.split("sync_functions[] = {").nth(1).expect("list");
        let list = list.split("};").next().expect("end");
        let kind = |name: &str| match name {
            "HI_SYNC_PTHREAD_BARRIER" => wire::SYNC_PTHREAD_BARRIER,
            "HI_SYNC_OMP_BARRIER" => wire::SYNC_OMP_BARRIER,
            "HI_SYNC_OMP_PARALLEL" => wire::SYNC_OMP_PARALLEL,
            "HI_SYNC_MPI_BARRIER" => wire::SYNC_MPI_BARRIER,
            other => panic!("{other}"),
        };
        let rows = list.lines().filter_map(|line| {
            let (name, which) = line.trim().strip_prefix("{\"")?.split_once("\", ")?;
            Some((name, kind(which.trim_end_matches("},"))))
        });
        assert_eq!(rows.collect::<Vec<_>>(), SYNC_FUNCTIONS);
    }

    /// Libraries that programs of this machine load, by the start of their names.
    fn library(name: &str) -> Option<std::path::PathBuf> {
        let folders = [
            "/lib/x86_64-linux-gnu",
            "/usr/lib/x86_64-linux-gnu",
            "/lib64",
        ];
        let path = |folder: &str| Path::new(folder).join(name);
        folders.iter().map(|f| path(f)).find(|p| p.is_file())
    }

    #[test]
    fn the_barrier_of_libc_is_found_where_its_code_is() {
        let libc = library("libc.so.6").expect("libc");
        let found = read_sync_points(&libc, false).expect("ELF");
        let barriers: Vec<_> = found.points.iter().filter(|p| p.kind == 0).collect();
        assert_eq!(barriers.len(), 1, "{found:?}");
        assert!(barriers[0].names.contains("pthread_barrier_wait"));
        assert!(!barriers[0].own);
        // The function begins with `endbr64` or `push`, or moves what it was given.
        let bytes = std::fs::read(&libc).expect("libc");
        let first = &bytes[barriers[0].offset as usize..][..4];
        assert!(
            first == [0xf3, 0x0f, 0x1e, 0xfa]
                || (0x41..=0x57).contains(&first[0])
                || first[0] == 0x48,
            "{first:x?}"
        );
    }

    #[test]
    fn names_of_the_same_code_are_one_point() {
        let Some(gomp) = library("libgomp.so.1") else {
            return;
        };
        let found = read_sync_points(&gomp, false).expect("ELF");
        let dynamic: Vec<_> = found
            .points
            .iter()
            .filter(|p| p.names.iter().any(|n| n.ends_with("loop_dynamic")))
            .collect();
        assert_eq!(dynamic.len(), 1, "{found:?}");
        assert!(dynamic[0]
            .names
            .contains("GOMP_parallel_loop_nonmonotonic_dynamic"));
    }

    #[test]
    fn what_is_no_program_has_no_points() {
        assert_eq!(read_sync_points(Path::new("/dev/null"), true), None);
        assert_eq!(read_sync_points(Path::new("/nonexistent"), true), None);
        assert_eq!(read_sync_points(Path::new("/etc/passwd"), false), None);
    }

    #[test]
    fn a_program_imports_what_it_calls() {
        let own = std::env::current_exe().expect("own path");
        let found = read_sync_points(&own, true).expect("ELF");
        assert!(found.imports.contains("malloc"), "{:?}", found.imports);
        assert_eq!(found.points, []);
    }
}
