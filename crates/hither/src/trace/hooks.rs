//! Functions named on the command line -> places in files that the tracer watches for.
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hither_profile::TraceOptions;

use super::collector::{Hook, HookKind};
use super::target::Target;
use super::{elf, symbols};

/// Most suggestions for a misspelt name.
const SUGGESTIONS: usize = 3;

/// Finds the functions of `--from`, `--until` and `--only-functions`.
///
/// # Errors
/// When one is in none of the programs that the command names.
pub fn resolve(options: &TraceOptions, target: &Target) -> Result<Vec<Hook>> {
    let from = options.from.iter().map(|name| (HookKind::From, name));
    let until = options.until.iter().map(|name| (HookKind::Until, name));
    let only = options.only_functions.iter();
    let only = only.map(|name| (HookKind::Only, name));
    let wanted: Vec<_> = from.chain(until).chain(only).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let programs = programs(target);
    let hooks = wanted.into_iter();
    hooks
        .map(|(kind, name)| find(&programs, kind, name))
        .collect()
}

/// The program itself and, as with `mpirun -np 4 ./app`, programs among its arguments.
fn programs(target: &Target) -> Vec<PathBuf> {
    let arguments = target.argv.iter().skip(1).map(PathBuf::from);
    let is_program = |path: &PathBuf| {
        let file = path.is_file().then(|| File::open(path).ok()).flatten();
        file.is_some_and(|f| elf::read(&f).is_ok_and(|e| e.foreign().is_none() && e.runs()))
    };
    std::iter::once(target.executable.clone())
        .chain(arguments.filter(is_program))
        .collect()
}

fn find(programs: &[PathBuf], kind: HookKind, name: &str) -> Result<Hook> {
    for program in programs {
        if let Some(address) = symbols::function(program, name) {
            return hook(program, kind, address);
        }
    }
    let shown: Vec<_> = programs.iter().map(|p| p.display().to_string()).collect();
    let shown = shown.join(" and ");
    let known: Vec<String> = programs
        .iter()
        .flat_map(|p| symbols::functions(p))
        .collect();
    if known.is_empty() {
        bail!("there is no function {name} in {shown}, which has no symbols; build it without -s and do not strip it");
    }
    match closest(name, &known).as_slice() {
        [] => bail!("there is no function {name} in {shown}; `nm -C` lists those there are"),
        close => bail!(
            "there is no function {name} in {shown}; did you mean {}?",
            close.join(" or ")
        ),
    }
}

fn hook(program: &Path, kind: HookKind, address: u64) -> Result<Hook> {
    let file = File::open(program).and_then(|f| Ok((f.metadata()?, elf::read(&f)?)));
    let (meta, elf) = file.with_context(|| format!("cannot read {}", program.display()))?;
    Ok(Hook {
        kind,
        offset: address.saturating_sub(elf.base),
        dev: meta.dev(),
        ino: meta.ino(),
    })
}

/// The names most like `name`: at most a third of it edited, or holding it.
fn closest<'a>(name: &str, known: &'a [String]) -> Vec<&'a str> {
    let near = |candidate: &str| {
        let edits = distance(name.as_bytes(), candidate.as_bytes());
        let inside = name.len() > 3 && candidate.contains(name);
        (edits <= name.len().div_ceil(3) || inside).then_some(edits)
    };
    let known = known.iter().map(String::as_str);
    let mut found: Vec<_> = known.filter_map(|k| near(k).map(|d| (d, k))).collect();
    found.sort_unstable();
    found.dedup();
    found
        .into_iter()
        .map(|(_, k)| k)
        .take(SUGGESTIONS)
        .collect()
}

/// Levenshtein's distance.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let check = |a: &str, b: &str, d| assert_eq!(distance(a.as_bytes(), b.as_bytes()), d);
        check("", "", 0);
        check("main", "main", 0);
        check("", "abc", 3);
        check("kitten", "sitting", 3);
        check("main", "man", 1);
    }

    #[test]
    fn suggestions() {
        let known = ["main", "solve", "solve_part", "resolve", "zebra"].map(String::from);
        let check = |name: &str, expected: &[&str]| assert_eq!(closest(name, &known), expected);
        check("slove", &["solve"]);
        check("solve", &["solve", "resolve", "solve_part"]);
        check("mian", &["main"]);
        check("xyz", &[]);
    }
}
