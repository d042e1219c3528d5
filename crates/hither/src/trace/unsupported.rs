//! Programs that DynamoRIO cannot run, or only in a certain way: told before they start.
//!
//! A Java virtual machine writes code into pages that it executes from, with several threads.
//! DynamoRIO write-protects such pages, to notice when code changes, and takes the write that
//! another thread has just made possible again for the program's own mistake. Without that
//! protection the interpreter runs well, as its code is only added to, but a compiler's does
//! not, since it changes code that has run. Erlang's compiler writes code through a second mapping of its memory,
//! which nobody notices.
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use anyhow::{bail, Result};
use hither_profile::shell_quote;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ReadCache};

use crate::program::target::TargetProgram;

/// Erlang's virtual machine with a compiler; without one it is `beam.emu.smp`.
const ERLANG: &str = "beam.smp";
/// The library by which the JDK's programs start a virtual machine.
const JVM_LAUNCHER: &[u8] = b"libjli.so";
/// The virtual machine's option for no compiler, also as the JDK's tools pass it on.
const INTERPRET: [&str; 2] = ["-Xint", "-J-Xint"];
/// Variables from which the virtual machine takes options, too.
const JVM_VARIABLES: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
/// Programs that start others under ptrace.
const PTRACERS: [&str; 6] = ["gdb", "gdbserver", "lldb", "ltrace", "rr", "strace"];

/// Whether the program starts a Java virtual machine.
#[must_use]
pub fn is_jvm(executable: &Path) -> bool {
    let Ok(file) = File::open(executable) else {
        return false;
    };
    let cache = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(&cache) else {
        return false;
    };
    let Ok(mut needed) = elf.import_libraries() else {
        return false;
    };
    needed.any(|library| library.is_ok_and(|l| l.name() == JVM_LAUNCHER))
}

/// Refuses what would not end as it does without the tracer.
///
/// # Errors
/// With what works instead.
pub fn check(target: &TargetProgram) -> Result<()> {
    let file = target.executable.file_name().unwrap_or_default();
    if let Some(name) = PTRACERS.into_iter().find(|&name| file == name) {
        bail!("{name} follows a program by ptrace, which DynamoRIO does not let it do; trace the program itself: hither trace -- PROGRAM");
    }
    if file == ERLANG {
        bail!("{ERLANG}: DynamoRIO cannot follow the code that Erlang's compiler writes through a second mapping; sample it at full speed (hither auto -- erl ...)");
    }
    if is_jvm(&target.executable) && !interprets(target, |name| std::env::var(name).ok()) {
        let program = (target.argv.first())
            .map_or(target.name.as_str().into(), |word| word.to_string_lossy());
        let name = shell_quote(&program);
        bail!("{name}: DynamoRIO cannot follow the code that Java's compiler changes while it runs; trace it interpreted (hither trace -- {name} -Xint ...), or sample it at full speed (hither auto -- {name} ...)");
    }
    Ok(())
}

fn interprets(target: &TargetProgram, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_option = |word: &OsStr| INTERPRET.iter().any(|option| word == *option);
    let of_variable = |name| {
        let value = variable(name).unwrap_or_default();
        value
            .split_whitespace()
            .any(|word| is_option(word.as_ref()))
    };
    target.argv.iter().any(|word| is_option(word)) || JVM_VARIABLES.into_iter().any(of_variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_interprets(line: &str, options: Option<&str>, expected: bool) {
        let target = TargetProgram {
            executable: "/usr/bin/java".into(),
            argv: line.split(' ').map(Into::into).collect(),
            name: "java".into(),
        };
        let variable = |name: &str| {
            options
                .filter(|_| name == "JDK_JAVA_OPTIONS")
                .map(Into::into)
        };
        assert_eq!(interprets(&target, variable), expected, "{line}");
    }

    #[test]
    fn interpreters_are_known_by_their_options() {
        check_interprets("java -cp . Main", None, false);
        check_interprets("java -Xint -cp . Main", None, true);
        check_interprets("javac -J-Xint Main.java", None, true);
        check_interprets("java -Xinternal Main", None, false);
        check_interprets("java Main", Some("-Xmx1g -Xint"), true);
        check_interprets("java Main", Some("-Xmx1g"), false);
    }

    #[test]
    fn other_programs_are_no_virtual_machines() {
        assert!(!is_jvm(Path::new("/bin/sh")));
        assert!(!is_jvm(Path::new("/no/such/program")));
        assert!(!is_jvm(Path::new("/etc/passwd")));
    }
}
