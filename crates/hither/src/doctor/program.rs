//! What a program offers to the tracer: its kind, symbols and debug information.
use super::{CheckState, CheckedVerb, DoctorCheck};
use hither_profile::open_regular_file;
use object::read::{ReadCache, ReadRef};
use object::{Architecture, Object, ObjectSection};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SET_ID: u32 = 0o6000;
const DEBUG_ROOT: &str = "/usr/lib/debug";

pub fn checks(program: &Path) -> Vec<DoctorCheck> {
    let path = find_program(program);
    let tried = format!("read {}", path.display());
    let check = DoctorCheck::ok(CheckedVerb::Trace, "program", &tried, "");
    let opened = open_regular_file(&path).and_then(|file| {
        let mode = file.metadata()?.permissions().mode();
        Ok((mode, HeaderFile(ReadCache::new(file))))
    });
    match opened {
        Ok((mode, data)) => check_elf(check, &path, mode, &data),
        Err(e) => vec![check.with_error(&e).failing(
            CheckState::Fails,
            "this program cannot be traced",
            "others",
            "give the path of a program that you may read",
        )],
    }
}

/// A name without a slash is looked up as the shell does.
fn find_program(program: &Path) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if program.components().count() > 1 || program.to_string_lossy().contains('/') {
        return program.to_owned();
    }
    let mut found = std::env::split_paths(&folders).map(|f| f.join(program));
    found.find(|p| p.is_file()).unwrap_or(program.to_owned())
}

/// Bytes of a file that are read in one piece at most: headers, a table of sections, notes. A file may
/// say that it has larger ones, and be sparse.
const MOST_AT_ONCE: u64 = 16 << 20;

/// A file of which only headers are read.
struct HeaderFile(ReadCache<File>);

impl<'data> ReadRef<'data> for &'data HeaderFile {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        match size > MOST_AT_ONCE {
            true => Err(()),
            false => self.0.read_bytes_at(offset, size),
        }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        let end = range.end.min(range.start.saturating_add(MOST_AT_ONCE));
        self.0.read_bytes_at_until(range.start..end, delimiter)
    }
}

/// The first line of a script.
fn script_line<'data>(data: impl ReadRef<'data>) -> Option<&'data [u8]> {
    const LONGEST: u64 = 256;
    let length = data.len().ok()?.min(LONGEST);
    let start = data.read_bytes_at(0, length).ok()?;
    let line = start.split(|&b| b == b'\n').next()?;
    line.starts_with(b"#!").then_some(line)
}

fn check_elf<'data>(
    mut check: DoctorCheck,
    path: &Path,
    mode: u32,
    data: impl ReadRef<'data>,
) -> Vec<DoctorCheck> {
    if let Some(line) = script_line(data) {
        check.found = format!("a script: {}", String::from_utf8_lossy(line).trim());
        return vec![check];
    }
    let elf = match object::File::parse(data) {
        Ok(elf) if elf.format() == object::BinaryFormat::Elf => elf,
        _ => {
            check.found = "neither an ELF file nor a script".to_string();
            return vec![refused_check(check, "give a program built for Linux")];
        }
    };
    let (bits, architecture) = (if elf.is_64() { 64 } else { 32 }, elf.architecture());
    let interpreter = elf.section_by_name(".interp").is_some();
    let linkage = if interpreter { "dynamic" } else { "static" };
    check.found = format!("{bits}-bit {architecture:?}, {linkage}");
    if !elf.is_64() || architecture != Architecture::X86_64 {
        return vec![refused_check(check, "build it for x86-64 (gcc -m64)")];
    }
    if mode & SET_ID != 0 {
        check.found += ", set-user-id or set-group-id";
        let fix = format!("trace a copy: cp {} copy", path.display());
        return vec![refused_check(check, &fix)];
    }
    vec![check, check_symbols(&elf), check_debug_info(&elf, path)]
}

fn refused_check(check: DoctorCheck, fix: &str) -> DoctorCheck {
    check.failing(
        CheckState::Fails,
        "this program cannot be traced",
        "others",
        fix,
    )
}

fn check_symbols<'data, R: ReadRef<'data>>(elf: &object::File<'data, R>) -> DoctorCheck {
    let tried = "look for .symtab";
    let check = DoctorCheck::ok(CheckedVerb::Trace, "symbols", tried, "there");
    if elf.section_by_name(".symtab").is_some() {
        return check;
    }
    let mut check = check.failing(
        CheckState::Degraded,
        "names of global variables and of functions that are not exported",
        "matrix, pages, heap blocks",
        "link without -s, and do not strip it",
    );
    check.found = "stripped".to_string();
    check
}

fn check_debug_info<'data, R: ReadRef<'data>>(
    elf: &object::File<'data, R>,
    path: &Path,
) -> DoctorCheck {
    let tried = "look for .debug_info, here and in a separate debug file";
    let inside = [".debug_info", ".zdebug_info"];
    let mut check = DoctorCheck::ok(CheckedVerb::Trace, "debug info", tried, "in the program");
    if inside
        .iter()
        .any(|name| elf.section_by_name(name).is_some_and(|s| s.size() > 0))
    {
        return check;
    }
    if let Some(file) = debug_file_candidates(elf, path)
        .into_iter()
        .find(|f| f.is_file())
    {
        check.found = format!("in {}", file.display());
        return check;
    }
    check = check.failing(
        CheckState::Degraded,
        "types and source lines of data structures",
        "names of global variables, if it has symbols",
        "compile with -g, or install the -dbgsym package",
    );
    check.found = "none".to_string();
    check
}

/// Where a separate debug file would be: by build-id, then by debug link.
fn debug_file_candidates<'data, R: ReadRef<'data>>(
    elf: &object::File<'data, R>,
    path: &Path,
) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Ok(Some([first, rest @ ..])) = elf.build_id() {
        let rest: String = rest.iter().map(|b| format!("{b:02x}")).collect();
        files.push(PathBuf::from(format!(
            "{DEBUG_ROOT}/.build-id/{first:02x}/{rest}.debug"
        )));
    }
    if let Ok(Some((name, _))) = elf.gnu_debuglink() {
        let name = String::from_utf8_lossy(name).into_owned();
        let full = path.canonicalize().unwrap_or(path.to_owned());
        let folder = full.parent().unwrap_or(Path::new("/"));
        files.push(folder.join(&name));
        files.push(folder.join(".debug").join(&name));
        let below = folder.strip_prefix("/").unwrap_or(folder);
        files.push(Path::new(DEBUG_ROOT).join(below).join(&name));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mode: u32, data: &[u8]) -> Vec<DoctorCheck> {
        check_elf(
            DoctorCheck::ok(CheckedVerb::Trace, "program", "", ""),
            Path::new("/x"),
            mode,
            data,
        )
    }

    #[test]
    fn kinds_of_programs() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let check = |mode, data: &[u8], state, found: &str| {
            let got = of(mode, data);
            assert_eq!((got[0].state, got[0].found.as_str()), (state, found));
        };
        check(0o755, &own, CheckState::Ok, "64-bit X86_64, dynamic");
        let set_id = "64-bit X86_64, dynamic, set-user-id or set-group-id";
        check(0o4755, &own, CheckState::Fails, set_id);
        let mut foreign = own.clone();
        foreign[18..20].copy_from_slice(&183u16.to_le_bytes());
        check(
            0o755,
            &foreign,
            CheckState::Fails,
            "64-bit Aarch64, dynamic",
        );
        check(
            0o755,
            b"#!/bin/sh -e\nls\n",
            CheckState::Ok,
            "a script: #!/bin/sh -e",
        );
        check(
            0o755,
            b"hello",
            CheckState::Fails,
            "neither an ELF file nor a script",
        );
        check(
            0o755,
            &own[..100],
            CheckState::Fails,
            "neither an ELF file nor a script",
        );
    }

    /// It ends in 20 GB of nothing, and says that the nothing is its sections.
    #[test]
    fn of_a_large_program_only_headers_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let mut own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let sparse = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            std::fs::File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_len(20 << 30))
                .unwrap();
            let began = std::time::Instant::now();
            let found = checks(&path);
            assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
            found.into_iter().map(|c| c.state).collect::<Vec<_>>()
        };
        assert_eq!(sparse(&own), [CheckState::Ok; 3]);
        // As many sections as the first says, which is somewhere in the nothing: 2^28 of them.
        let table = own.len().next_multiple_of(64);
        own.resize(table + 64, 0);
        own[table + 32..table + 40].copy_from_slice(&(1u64 << 28).to_le_bytes());
        own[40..48].copy_from_slice(&(table as u64).to_le_bytes());
        own[60..62].copy_from_slice(&[0, 0]);
        assert_eq!(sparse(&own), [CheckState::Fails]);
    }

    #[test]
    fn our_own_debug_info_is_found() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let states: Vec<_> = of(0o755, &own).iter().map(|c| c.state).collect();
        assert_eq!(states, [CheckState::Ok; 3]);
    }

    #[test]
    fn a_missing_program_fails_with_its_errno() {
        let got = checks(Path::new("/nonexistent/app"));
        assert_eq!(got[0].state, CheckState::Fails);
        assert_eq!(got[0].errno.as_deref(), Some("ENOENT"));
    }
}
