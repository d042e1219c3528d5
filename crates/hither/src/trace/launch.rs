//! Starts a target under DynamoRIO with the tracer in it.
//!
//! There is no drrun: the kernel starts libdynamorio.so itself under the target's name,
//! and three environment variables tell it which program to load and how. It loads our
//! client, which maps the segment at the path in its only argument.
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{bail, Context, Result};
use nix::sys::signal::SigSet;

use super::unsupported::is_jvm;
use crate::program::target::TargetProgram;
use crate::program::withheld_environment;
use hither_sys::wire::VERSION;

/// `-code_api`: let the client see all code. `-disable_traces`: with the tracer's code
/// inlined they cost 8-16 % instead of gaining. `-no_emulate_brk`: the program's heap is the
/// kernel's. Without guard pages within what a thread has, and with its heap mapped as a whole, a thread takes
/// 7 mappings of memory in place of 18, of which the kernel allows a process 65,530; its stacks keep their guard
/// pages. DynamoRIO's defaults do the rest: the release build writes no logs and prints only when it cannot go on.
const DYNAMORIO_OPTIONS: &str = "-code_api -disable_traces -no_emulate_brk \
    -no_per_thread_guard_pages -heap_commit_increment 256K";
/// Added for a Java virtual machine, see `unsupported.rs`.
const JVM_OPTIONS: &str = " -no_hw_cache_consistency";
/// Longest option string that DynamoRIO reads.
const MAX_OPTION_STRING: usize = 2047;

/// DynamoRIO and the client, as installed beside this program.
pub struct DynamoRioTracer {
    dynamorio: PathBuf,
    client: PathBuf,
}

impl DynamoRioTracer {
    /// Finds both relative to this program: PREFIX/bin/hither -> PREFIX/lib/hither.
    ///
    /// # Errors
    /// When they are not there.
    pub fn locate_installed() -> Result<Self> {
        let program = std::env::current_exe().context("cannot tell where hither itself is")?;
        let bin = program.parent().unwrap_or(Path::new("/"));
        let library = bin.parent().unwrap_or(bin).join("lib/hither");
        let file = |name: &str| {
            let path = library.join(name);
            if !path.is_file() {
                bail!("the tracer is missing: there is no {}; build it with `make`, or install hither again", path.display());
            }
            Ok(path)
        };
        let tracer = DynamoRioTracer {
            dynamorio: file("libdynamorio.so")?,
            client: file("libhither_tracer.so")?,
        };
        check_wire_version(&tracer.client)?;
        Ok(tracer)
    }

    /// Starts `target` as a child, attached to the segment at `attach`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(
        &self,
        target: &TargetProgram,
        attach: &str,
        follow: bool,
        mask: SigSet,
    ) -> Result<Child> {
        let mut command = self.command(target, attach, follow)?;
        set_up_child(&mut command, mask);
        let child = command.spawn();
        withheld_environment::withhold_again();
        child.with_context(|| format!("cannot start {}", target.executable.display()))
    }

    /// Becomes `target`, attached to the segment at `attach`.
    ///
    /// # Errors
    /// When it cannot; otherwise this does not return.
    pub fn become_target(
        &self,
        target: &TargetProgram,
        attach: &str,
        follow: bool,
    ) -> Result<std::convert::Infallible> {
        let mask = SigSet::thread_get_mask().context("cannot read the signal mask")?;
        let mut command = self.command(target, attach, follow)?;
        set_up_child(&mut command, mask);
        let error = command.exec();
        Err(error).with_context(|| format!("cannot start {}", target.executable.display()))
    }

    fn command(&self, target: &TargetProgram, attach: &str, follow: bool) -> Result<Command> {
        let mut command = Command::new(&self.dynamorio);
        if let Some((name, arguments)) = target.argv.split_first() {
            command.arg0(name).args(arguments);
        }
        withheld_environment::give_back();
        for (name, _) in std::env::vars_os() {
            if name.as_bytes().starts_with(b"DYNAMORIO_") {
                std::env::remove_var(name);
            }
        }
        // In our own environment, since `Command` would sort one that it changes; the
        // tracer takes them away again, so the program finds what we were given.
        std::env::set_var("DYNAMORIO_RUNUNDER", "1");
        // The program's heap is the kernel's, see tracer/dynamorio/exec.c.
        std::env::set_var("DYNAMORIO_NO_EMULATE_BRK", "1");
        std::env::set_var("DYNAMORIO_EXE_PATH", &target.executable);
        // Keeps a user's own configuration files for DynamoRIO out of it.
        std::env::set_var("DYNAMORIO_CONFIGDIR", "/dev/null");
        std::env::set_var(
            "DYNAMORIO_OPTIONS",
            option_string(&self.client, attach, follow, is_jvm(&target.executable))?,
        );
        Ok(command)
    }
}

/// A tracer of another version would leave the program to run untraced.
fn check_wire_version(client: &Path) -> Result<()> {
    let bytes =
        std::fs::read(client).with_context(|| format!("cannot read {}", client.display()))?;
    let wanted = format!("hither tracer, wire {VERSION};");
    if bytes
        .windows(wanted.len())
        .any(|text| text == wanted.as_bytes())
    {
        return Ok(());
    }
    bail!(
        "{} is of another version than this hither; build both with `make`, or install hither again",
        client.display()
    )
}

fn set_up_child(command: &mut Command, mask: SigSet) {
    hither_sys::process::make_room_for_hidden_files(command);
    hither_sys::process::restore_signals_and_limits(command, mask);
}

/// The option string. DynamoRIO splits it at blanks outside quotes, and the client's
/// part at semicolons; it knows no escapes.
fn option_string(client: &Path, attach: &str, follow: bool, jvm: bool) -> Result<OsString> {
    let path = client.as_os_str().as_bytes();
    let quote = [b'\'', b'"', b'`'].into_iter().find(|q| !path.contains(q));
    let (Some(quote), false) = (quote, path.contains(&b';')) else {
        bail!("DynamoRIO cannot load {}: the path has a semicolon or too many kinds of quotes in it; install hither elsewhere", client.display());
    };
    let mut text = DYNAMORIO_OPTIONS.as_bytes().to_vec();
    if jvm {
        text.extend(JVM_OPTIONS.as_bytes());
    }
    if !follow {
        text.extend(b" -no_follow_children");
    }
    text.extend(b" -client_lib ");
    text.push(quote);
    text.extend(path);
    text.extend(b";0;");
    text.extend(attach.as_bytes());
    text.push(quote);
    if text.len() > MAX_OPTION_STRING {
        bail!(
            "DynamoRIO cannot load {}: the path is too long; install hither elsewhere",
            client.display()
        );
    }
    Ok(OsStr::from_bytes(&text).to_os_string())
}

/// # Errors
/// When this very process runs under the tracer: then it must not start another.
pub fn refuse_nested() -> Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps");
    if maps.is_ok_and(|maps| maps.contains("libdynamorio.so")) {
        bail!("this hither is itself being traced by hither, which cannot be nested; leave one of the two out");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(client: &str, follow: bool, expected: Option<&str>) {
        let got = option_string(Path::new(client), "/proc/7/fd/3", follow, false).ok();
        assert_eq!(got.as_deref(), expected.map(OsStr::new));
    }

    #[test]
    fn option_strings() {
        check(
            "/opt/h/c.so",
            true,
            Some("-code_api -disable_traces -no_emulate_brk -no_per_thread_guard_pages -heap_commit_increment 256K -client_lib '/opt/h/c.so;0;/proc/7/fd/3'"),
        );
        check(
            "/it's here/c.so",
            false,
            Some("-code_api -disable_traces -no_emulate_brk -no_per_thread_guard_pages -heap_commit_increment 256K -no_follow_children -client_lib \"/it's here/c.so;0;/proc/7/fd/3\""),
        );
        check("/a;b/c.so", true, None);
        check("/'\"`/c.so", true, None);
        check(&format!("/{}/c.so", "x".repeat(2000)), true, None);
    }

    #[test]
    fn a_tracer_of_another_version_is_refused() {
        let check = |text: &str, fits: bool| {
            let file = tempfile::NamedTempFile::new().expect("file");
            std::fs::write(&file, text).expect("written");
            assert_eq!(check_wire_version(file.path()).is_ok(), fits, "{text}");
        };
        check(&format!("\0hither tracer, wire {VERSION};\0"), true);
        check(&format!("\0hither tracer, wire {VERSION}0;\0"), false);
        check("", false);
    }

    #[test]
    fn tests_are_not_traced() {
        assert!(refuse_nested().is_ok());
    }
}
