//! Functions named on the command line -> places in files that the tracer watches for.
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hither_profile::TraceOptions;

use super::collector::{FunctionHook, HookKind};
use super::symbolizer::Symbolizer;
use crate::program::target::TargetProgram;
use crate::program::{elf_header, sync_points};
use hither_sys::wire;

/// Most suggestions for a misspelt name.
const SUGGESTIONS: usize = 3;

/// Finds the functions of `--from`, `--until` and `--only-functions`.
///
/// # Errors
/// When one is in none of the programs that the command names.
pub fn resolve_hooks(
    options: &TraceOptions,
    target: &TargetProgram,
    symbols: &mut dyn Symbolizer,
) -> Result<Vec<FunctionHook>> {
    let from = options.from.iter().map(|name| (HookKind::From, name));
    let until = options.until.iter().map(|name| (HookKind::Until, name));
    let only = options.only_functions.iter();
    let only = only.map(|name| (HookKind::Only, name));
    let wanted: Vec<_> = from.chain(until).chain(only).collect();
    let programs = candidate_programs(target);
    let mut hooks = static_program_hooks(target, symbols);
    for (kind, name) in wanted {
        hooks.extend(find_hooks(&programs, kind, name, symbols)?);
    }
    Ok(hooks)
}

/// Allocators, which the tracer finds by itself in shared libraries, but not in a static
/// program, which exports nothing.
const ALLOCATORS: [(&str, HookKind); 13] = [
    ("malloc", HookKind::Alloc(wire::ALLOC_MALLOC)),
    ("calloc", HookKind::Alloc(wire::ALLOC_CALLOC)),
    ("realloc", HookKind::Alloc(wire::ALLOC_REALLOC)),
    ("aligned_alloc", HookKind::Alloc(wire::ALLOC_ALIGNED)),
    ("memalign", HookKind::Alloc(wire::ALLOC_ALIGNED)),
    ("posix_memalign", HookKind::Alloc(wire::ALLOC_MEMALIGN_OUT)),
    ("_Znwm", HookKind::Alloc(wire::ALLOC_NEW)),
    ("_Znam", HookKind::Alloc(wire::ALLOC_NEW)),
    ("_ZnwmSt11align_val_t", HookKind::Alloc(wire::ALLOC_NEW)),
    ("_ZnamSt11align_val_t", HookKind::Alloc(wire::ALLOC_NEW)),
    ("_ZnwmRKSt9nothrow_t", HookKind::Alloc(wire::ALLOC_NEW)),
    ("_ZnamRKSt9nothrow_t", HookKind::Alloc(wire::ALLOC_NEW)),
    ("free", HookKind::Alloc(wire::ALLOC_FREE)),
];

/// Allocators and synchronisation points of a static program; none for others.
fn static_program_hooks(target: &TargetProgram, symbols: &mut dyn Symbolizer) -> Vec<FunctionHook> {
    let program = &target.executable;
    let is_static = File::open(program)
        .and_then(|f| elf_header::read_header(&f))
        .is_ok_and(|e| e.interpreter.is_none() && e.foreign_machine().is_none());
    if !is_static {
        return Vec::new();
    }
    let waiting = sync_points::SYNC_FUNCTIONS.map(|(name, which)| (name, HookKind::Sync(which)));
    let found = ALLOCATORS
        .iter()
        .chain(&waiting)
        .filter_map(|&(name, kind)| {
            let at = symbols.function_addresses(program, name);
            let at = at.first().copied()?;
            make_hook(program, kind, at).ok()
        });
    found.collect()
}

/// The program itself and, as with `mpirun -np 4 ./app`, programs among its arguments.
fn candidate_programs(target: &TargetProgram) -> Vec<PathBuf> {
    let arguments = target.argv.iter().skip(1).map(PathBuf::from);
    let is_program = |path: &PathBuf| {
        let file = path.is_file().then(|| File::open(path).ok()).flatten();
        file.is_some_and(|f| {
            elf_header::read_header(&f)
                .is_ok_and(|e| e.foreign_machine().is_none() && e.is_executable())
        })
    };
    std::iter::once(target.executable.clone())
        .chain(arguments.filter(is_program))
        .collect()
}

/// All functions of that name in the first program that has one.
fn find_hooks(
    programs: &[PathBuf],
    kind: HookKind,
    name: &str,
    symbols: &mut dyn Symbolizer,
) -> Result<Vec<FunctionHook>> {
    for program in programs {
        let addresses = symbols.function_addresses(program, name);
        if !addresses.is_empty() {
            let hooks = addresses.into_iter();
            return hooks.map(|at| make_hook(program, kind, at)).collect();
        }
    }
    let shown: Vec<_> = programs.iter().map(|p| p.display().to_string()).collect();
    let shown = shown.join(" and ");
    let similar = programs
        .iter()
        .flat_map(|p| symbols.similar_functions(p, name));
    let similar: Vec<_> = similar.take(SUGGESTIONS).collect();
    if similar.is_empty() {
        bail!("there is no function {name} in {shown}; `nm -C` lists those there are: a function that was inlined is not, nor any of a stripped program");
    }
    bail!(
        "there is no function {name} in {shown}; did you mean {}?",
        similar.join(" or ")
    )
}

fn make_hook(program: &Path, kind: HookKind, address: u64) -> Result<FunctionHook> {
    let file = File::open(program).and_then(|f| Ok((f.metadata()?, elf_header::read_header(&f)?)));
    let (meta, elf) = file.with_context(|| format!("cannot read {}", program.display()))?;
    Ok(FunctionHook {
        kind,
        offset: address.saturating_sub(elf.base),
        dev: meta.dev(),
        ino: meta.ino(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::symbols::ProgramSymbols;

    /// The list of the tracer, from its source.
    #[test]
    fn allocators_are_those_of_the_tracer() {
        let source = include_str!("../../../../tracer/dynamorio/alloc.c");
        let list = source.split("[ALLOCATION_FUNCTIONS] = {").nth(1);
        let list = list.and_then(|list| list.split("};").next()).expect("list");
        let kind = |name: &str| match name {
            "HI_ALLOC_MALLOC" => wire::ALLOC_MALLOC,
            "HI_ALLOC_CALLOC" => wire::ALLOC_CALLOC,
            "HI_ALLOC_REALLOC" => wire::ALLOC_REALLOC,
            "HI_ALLOC_ALIGNED" => wire::ALLOC_ALIGNED,
            "HI_ALLOC_MEMALIGN_OUT" => wire::ALLOC_MEMALIGN_OUT,
            "HI_ALLOC_NEW" => wire::ALLOC_NEW,
            "HI_ALLOC_FREE" => wire::ALLOC_FREE,
            other => panic!("{other}"),
        };
        let rows = list.lines().filter_map(|line| {
            let (name, which) = line.trim().strip_prefix("{\"")?.split_once("\", ")?;
            Some((name, HookKind::Alloc(kind(which.trim_end_matches("},")))))
        });
        assert_eq!(rows.collect::<Vec<_>>(), ALLOCATORS);
    }

    fn own() -> TargetProgram {
        let executable = std::env::current_exe().expect("own path");
        TargetProgram {
            argv: vec!["sh".into(), "-c".into(), executable.clone().into()],
            executable: "/bin/sh".into(),
            name: "sh".to_string(),
        }
    }

    #[test]
    fn functions_are_found_in_programs_among_the_arguments() {
        let options = TraceOptions {
            from: Some("main".to_string()),
            ..TraceOptions::default()
        };
        let hooks = resolve_hooks(&options, &own(), &mut ProgramSymbols::new()).expect("main");
        let meta = std::fs::metadata(std::env::current_exe().expect("own path")).expect("meta");
        assert_eq!(hooks.len(), 1);
        assert_eq!(hooks[0].kind, HookKind::From);
        assert_eq!((hooks[0].dev, hooks[0].ino), (meta.dev(), meta.ino()));
        assert!(hooks[0].offset > 0);
    }

    #[test]
    fn misspelt_functions_come_with_suggestions() {
        let options = TraceOptions {
            until: Some("mian".to_string()),
            ..TraceOptions::default()
        };
        let error = resolve_hooks(&options, &own(), &mut ProgramSymbols::new())
            .expect_err("mian")
            .to_string();
        assert!(
            error.contains("no function mian in /bin/sh and "),
            "{error}"
        );
        assert!(error.contains("did you mean "), "{error}");
    }

    #[test]
    fn nothing_asked_nothing_read() {
        let nowhere = TargetProgram {
            executable: "/nonexistent".into(),
            ..own()
        };
        assert_eq!(
            resolve_hooks(
                &TraceOptions::default(),
                &nowhere,
                &mut ProgramSymbols::new()
            )
            .expect("none"),
            []
        );
    }
}
