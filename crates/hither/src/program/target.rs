//! From what the user typed to a file that can be loaded: search as execvp does,
//! resolve `#!` scripts as the kernel does, refuse what cannot be followed.
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::{access, AccessFlags};

use super::elf_header;

/// Bytes of a file that the kernel looks at for `#!`.
const SCRIPT_HEAD_BYTES: usize = 256;
/// Scripts that may name scripts as their interpreters (the kernel's limit).
const SCRIPT_DEPTH: usize = 5;

/// A program that hither can start and follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetProgram {
    /// The ELF file to load: absolute, links not resolved, so that the process is
    /// named as it would be without us.
    pub executable: PathBuf,
    /// Its arguments from argv\[0\] on.
    pub argv: Vec<OsString>,
    /// Name of the program or script asked for.
    pub name: String,
}

/// Why a command cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("{0}: no such program; check the spelling, or give its path")]
    NotFound(String),
    #[error("{program}: its interpreter {interpreter} does not exist; install it or correct the program")]
    NoInterpreter {
        program: String,
        interpreter: String,
    },
    #[error("{0} is a folder; name the program in it")]
    Folder(String),
    #[error("{0} is not executable; chmod +x makes it so")]
    NotExecutable(String),
    #[error("{path} cannot be read, which following it needs ({error}); chmod +r allows it")]
    Unreadable { path: String, error: io::Error },
    #[error("{0} is neither a program nor a script that this machine can start; check that the file is complete")]
    NotAProgram(String),
    #[error("{0}: its interpreters are scripts in more than {SCRIPT_DEPTH} levels; name a real program in its first line")]
    TooDeep(String),
    #[error("{path} is a program for {machine}; hither follows 64-bit x86 programs, so build it for x86-64")]
    Foreign { path: String, machine: String },
    #[error("{path} {privilege}, which a program that hither follows cannot have; use a copy of it (cp drops that)")]
    Privileged {
        path: String,
        privilege: &'static str,
    },
}

impl TargetError {
    /// The exit status a shell gives for the same mistake, 2 where it has none.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            TargetError::NotFound(_) | TargetError::NoInterpreter { .. } => 127,
            TargetError::Folder(_)
            | TargetError::NotExecutable(_)
            | TargetError::Unreadable { .. }
            | TargetError::NotAProgram(_)
            | TargetError::TooDeep(_) => 126,
            TargetError::Foreign { .. } | TargetError::Privileged { .. } => 2,
        }
    }
}

/// Finds the program that `command` starts.
///
/// # Errors
/// When there is none, or one that cannot be followed.
pub fn resolve_target(
    command: &[OsString],
    path: Option<&OsStr>,
) -> Result<TargetProgram, TargetError> {
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let mut file = search_path(program, path)?;
    let name = file.file_name().unwrap_or(program);
    let name = name.to_string_lossy().into_owned();
    let mut argv = command.to_vec();
    for _ in 0..=SCRIPT_DEPTH {
        let head = read_head(&file)?;
        if head.starts_with(&elf_header::MAGIC) {
            check_elf(&file)?;
            let executable = std::path::absolute(&file).unwrap_or(file);
            return Ok(TargetProgram {
                executable,
                argv,
                name,
            });
        }
        let script = parse_script_line(&head)
            .ok_or_else(|| TargetError::NotAProgram(display_path(&file)))?;
        argv[0] = file.clone().into_os_string();
        argv.splice(0..0, script.argv());
        let interpreter = PathBuf::from(&script.interpreter);
        check_file(&interpreter).map_err(|error| match error {
            TargetError::NotFound(interpreter) => TargetError::NoInterpreter {
                program: display_path(&file),
                interpreter,
            },
            other => other,
        })?;
        file = interpreter;
    }
    Err(TargetError::TooDeep(display_path(Path::new(program))))
}

fn display_path(path: &Path) -> String {
    path.display().to_string()
}

/// execvp's search: a name with a slash is a path; the first executable file wins; a
/// file found that may not be executed is only reported if nothing better follows.
fn search_path(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, TargetError> {
    if program.as_bytes().contains(&b'/') {
        let file = PathBuf::from(program);
        check_file(&file)?;
        return Ok(file);
    }
    let mut refused = None;
    if !program.is_empty() {
        for folder in std::env::split_paths(path.unwrap_or(OsStr::new("/bin:/usr/bin"))) {
            let file = match folder.as_os_str().is_empty() {
                true => Path::new(".").join(program),
                false => folder.join(program),
            };
            match check_file(&file) {
                Ok(()) => return Ok(file),
                Err(TargetError::NotFound(_)) => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
    }
    Err(refused.unwrap_or_else(|| TargetError::NotFound(program.to_string_lossy().into_owned())))
}

fn check_file(file: &Path) -> Result<(), TargetError> {
    let Ok(meta) = fs::metadata(file) else {
        return Err(TargetError::NotFound(display_path(file)));
    };
    if meta.is_dir() {
        return Err(TargetError::Folder(display_path(file)));
    }
    if !meta.is_file() || access(file, AccessFlags::X_OK).is_err() {
        return Err(TargetError::NotExecutable(display_path(file)));
    }
    Ok(())
}

fn open(file: &Path) -> Result<File, TargetError> {
    File::open(file).map_err(|error| TargetError::Unreadable {
        path: display_path(file),
        error,
    })
}

fn read_head(file: &Path) -> Result<Vec<u8>, TargetError> {
    let mut head = Vec::with_capacity(SCRIPT_HEAD_BYTES);
    let read = open(file)?
        .take(SCRIPT_HEAD_BYTES as u64)
        .read_to_end(&mut head);
    read.map_err(|error| TargetError::Unreadable {
        path: display_path(file),
        error,
    })?;
    Ok(head)
}

/// What a script's first line asks for.
#[derive(Debug, PartialEq, Eq)]
struct ScriptLine {
    interpreter: OsString,
    argument: Option<OsString>,
}

impl ScriptLine {
    fn argv(&self) -> impl Iterator<Item = OsString> + use<> {
        let interpreter = Some(self.interpreter.clone());
        interpreter.into_iter().chain(self.argument.clone())
    }
}

/// The kernel's reading of `#!` (fs/binfmt_script.c): the interpreter ends at a blank,
/// the rest of the line, trimmed, is one argument. Text without `#!` is for the shell,
/// as execvp does. `None` for anything else.
fn parse_script_line(head: &[u8]) -> Option<ScriptLine> {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let Some(rest) = head.strip_prefix(b"#!") else {
        let text = !head.contains(&0);
        return text.then(|| ScriptLine {
            interpreter: "/bin/sh".into(),
            argument: None,
        });
    };
    let end = rest.iter().position(|&b| b == b'\n' || b == 0);
    let cut_off = end.is_none() && head.len() == SCRIPT_HEAD_BYTES;
    let line = &rest[..end.unwrap_or(rest.len())];
    let start = line.iter().position(|b| !blank(b))?;
    let line = &line[start..];
    let (path, argument) = match line.iter().position(blank) {
        Some(at) => (&line[..at], line[at..].trim_ascii()),
        None if cut_off => return None,
        None => (line, &line[..0]),
    };
    let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Some(ScriptLine {
        interpreter: owned(path),
        argument: (!argument.is_empty()).then(|| owned(argument)),
    })
}

/// Refuses ELF files that DynamoRIO could not run, or not as the kernel would.
fn check_elf(path: &Path) -> Result<(), TargetError> {
    let file = open(path)?;
    let meta = file.metadata().map_err(|error| TargetError::Unreadable {
        path: display_path(path),
        error,
    })?;
    let elf =
        elf_header::read_header(&file).map_err(|_| TargetError::NotAProgram(display_path(path)))?;
    if let Some(machine) = elf.foreign_machine() {
        return Err(TargetError::Foreign {
            path: display_path(path),
            machine,
        });
    }
    if !elf.is_executable() {
        return Err(TargetError::NotAProgram(display_path(path)));
    }
    if let Some(interpreter) = elf.interpreter.filter(|i| !i.exists()) {
        return Err(TargetError::NoInterpreter {
            program: display_path(path),
            interpreter: display_path(&interpreter),
        });
    }
    match privilege(meta.permissions().mode(), path) {
        Some(privilege) => Err(TargetError::Privileged {
            path: display_path(path),
            privilege,
        }),
        None => Ok(()),
    }
}

/// Bits of stat's st_mode.
const SET_USER_ID: u32 = 0o4000;
/// Without the execute bit, set-group-id means something else.
const SET_GROUP_ID: u32 = 0o2010;

fn privilege(mode: u32, path: &Path) -> Option<&'static str> {
    if mode & SET_USER_ID != 0 {
        Some("is set-user-id")
    } else if mode & SET_GROUP_ID == SET_GROUP_ID {
        Some("is set-group-id")
    } else if hither_sys::process::has_capabilities(path) {
        Some("has file capabilities")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
