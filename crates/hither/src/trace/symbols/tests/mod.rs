//! Programs are compiled here and now, so that what compilers write is what is read.
mod allocations;
mod files;
mod functions;
mod hostile;
mod libraries;
mod lines;
mod source;
mod source_text;
mod statics;
mod wrappers;

use crate::trace::symbolizer::{StaticObject, Symbolizer};
use crate::trace::symbols::ProgramSymbols;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with programs, removed at the end of a test.
pub struct Workshop(tempfile::TempDir);

impl Workshop {
    pub fn new() -> Workshop {
        Workshop(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().expect("it exists").join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).expect("can write");
        self.path(name)
    }

    /// Compiles `text` into a program.
    pub fn build(&self, source: &str, text: &str, options: &[&str]) -> PathBuf {
        let source = self.write(source, text);
        let extension = source.extension().and_then(|e| e.to_str());
        let (compiler, package) = match extension {
            Some("c") => ("gcc", "gcc"),
            Some("cpp") => ("g++", "g++"),
            Some("f90") => ("gfortran", "gfortran"),
            Some("rs") => ("rustc", "the Rust toolchain"),
            other => panic!("no compiler for {other:?}"),
        };
        let program = source.with_extension("out");
        let mut command = Command::new(compiler);
        command.args(options).arg(&source).arg("-o").arg(&program);
        let status = command.current_dir(self.0.path()).output();
        let status = status.unwrap_or_else(|e| panic!("install {package}: {compiler}: {e}"));
        let errors = String::from_utf8_lossy(&status.stderr);
        assert!(status.status.success(), "{compiler} {options:?}: {errors}");
        program
    }

    pub fn tool(&self, command: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(command);
        command.args(arguments).current_dir(self.0.path());
        let output = command.output().expect("binutils are installed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// The number of the first line with `mark`.
pub fn line_of(text: &str, mark: &str) -> u32 {
    let at = text.lines().position(|l| l.contains(mark));
    at.unwrap_or_else(|| panic!("no {mark:?} in the source")) as u32 + 1
}

pub fn named(file: &Path, name: &str) -> StaticObject {
    let all = ProgramSymbols::new().static_objects(file);
    let found = all.iter().find(|o| o.name == name).cloned();
    found.unwrap_or_else(|| {
        let names: Vec<_> = all.iter().map(|o| o.name.as_str()).collect();
        panic!("{name} is not among {names:?}")
    })
}
