//! The rules, each a pure function from a file's place and text to sentences about
//! what breaks it.
use crate::source::{code_only, paths};
use std::collections::HashSet;

/// A crate or a module of the program, and what of ours it may name.
pub struct Layer {
    pub name: &'static str,
    pub may_use: &'static [&'static str],
    /// Pure: no input or output, no clock.
    pub pure: bool,
}

pub const EVERYTHING: &[&str] = &["*"];

const fn layer(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    let pure = false;
    Layer {
        name,
        may_use,
        pure,
    }
}

const fn pure(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    let pure = true;
    Layer {
        name,
        may_use,
        pure,
    }
}

/// One row per crate and per module of the program. A new one needs its row.
pub const LAYERS: &[Layer] = &[
    layer("profile", &[]),
    layer("sys", &["profile"]),
    layer("sys/scotch", &[]),
    layer("sys/table", &[]),
    layer("model", &[]),
    pure("model/locality", &["profile"]),
    pure("model/rng", &[]),
    pure("model/units", &[]),
    layer("model/topology", &["profile"]),
    pure(
        "model/metrics",
        &["profile", "model/locality", "model/rng", "model/units"],
    ),
    pure(
        "model/map",
        &[
            "profile",
            "sys/scotch",
            "model/locality",
            "model/rng",
            "model/topology",
        ],
    ),
    pure(
        "model/simulate",
        &[
            "profile",
            "sys/table",
            "model/locality",
            "model/rng",
            "model/topology",
        ],
    ),
    layer("guest", &[]),
    layer("xtask", &["guest"]),
    layer("hither/main", &["hither/cli"]),
    layer("hither/cli", EVERYTHING),
    layer(
        "hither/app",
        &[
            "profile",
            "sys",
            "model/units",
            "model/topology",
            "model/metrics",
            "model/map",
            "model/simulate",
            "hither/program",
            "hither/trace",
            "hither/formats",
            "hither/run",
            "hither/auto",
            "hither/report",
        ],
    ),
    layer("hither/doctor", &["profile", "sys", "model/topology"]),
    layer("hither/program", &["profile", "sys", "model/topology"]),
    layer(
        "hither/trace",
        &[
            "profile",
            "sys",
            "model/rng",
            "model/topology",
            "model/units",
            "hither/program",
        ],
    ),
    layer("hither/formats", &["profile"]),
    layer("hither/follow", &["profile", "sys", "hither/program"]),
    layer(
        "hither/run",
        &[
            "profile",
            "sys",
            "model/topology",
            "hither/program",
            "hither/follow",
        ],
    ),
    layer(
        "hither/auto",
        &[
            "profile",
            "sys",
            "model/locality",
            "model/rng",
            "model/units",
            "hither/program",
            "hither/follow",
        ],
    ),
    layer(
        "hither/report",
        &["profile", "model/metrics", "model/topology", "model/units"],
    ),
];

/// `crates/hither/src/trace/elf.rs` -> ("hither/trace", ["trace", "elf"]).
pub fn place(file: &str) -> Option<(String, Vec<&str>)> {
    let (krate, inside) = match file.strip_prefix("crates/") {
        Some(rest) => rest.split_once("/src/")?,
        None => match file.strip_prefix("tests/guest/src/") {
            Some(inside) => ("guest", inside),
            None => ("xtask", file.strip_prefix("xtask/src/")?),
        },
    };
    let mut module: Vec<&str> = inside.strip_suffix(".rs")?.split('/').collect();
    let last = module.pop()?;
    let names_its_folder = matches!(last, "mod" | "lib") || (module.is_empty() && last == "main");
    if !names_its_folder {
        module.push(last);
    }
    let layer = match (krate, module.first()) {
        ("hither", Some(stage)) => format!("hither/{stage}"),
        ("hither", None) => "hither/main".to_string(),
        ("model", Some(stage)) => format!("model/{stage}"),
        _ => krate.to_string(),
    };
    Some((layer, module))
}

pub fn layering(file: &str, text: &str) -> Vec<String> {
    let Some((name, module)) = place(file) else {
        return Vec::new();
    };
    let Some(layer) = LAYERS.iter().find(|l| l.name == name) else {
        return vec![format!("{file}: `{name}` has no row in LAYERS")];
    };
    let mut breaches = Vec::new();
    for path in paths(text, &module) {
        let Some(used) = ours(&path, &name) else {
            continue;
        };
        let allowed = |row: &str| row == "*" || row == used;
        if used != name && !layer.may_use.iter().any(|row| allowed(row)) {
            let path = path.join("::");
            breaches.push(format!("{file}: `{name}` may not use `{used}` ({path})"));
        }
    }
    breaches
}

/// The layer that a path names, if it is one of ours.
fn ours(path: &[String], from: &str) -> Option<String> {
    let second = path.get(1).map(String::as_str);
    match (path[0].as_str(), second) {
        ("hither_guest", _) => Some("guest".into()),
        ("hither_profile", _) => Some("profile".into()),
        ("hither_scotch", _) => Some("sys/scotch".into()),
        ("hither_table", _) => Some("sys/table".into()),
        ("hither_model", Some(stage)) => Some(format!("model/{stage}")),
        ("hither_sys", _) => Some("sys".into()),
        // The modules of the other crates are their own affair.
        ("crate", Some(module)) => {
            let (krate, _) = from.split_once('/').filter(|_| !from.starts_with("sys"))?;
            Some(format!("{krate}/{module}"))
        }
        _ => None,
    }
}

const EFFECTS: &[&str] = &["env", "fs", "io", "net", "process", "thread", "time"];

pub fn purity(file: &str, text: &str) -> Vec<String> {
    let Some((name, module)) = place(file) else {
        return Vec::new();
    };
    if !LAYERS.iter().any(|l| l.pure && l.name == name) {
        return Vec::new();
    }
    let named = paths(text, &module);
    let effects = named
        .iter()
        .filter(|p| p[0] == "std" && p.get(1).is_some_and(|m| EFFECTS.contains(&m.as_str())));
    effects
        .map(|p| format!("{file}: `{name}` is pure and may not use {}", p.join("::")))
        .collect()
}

/// `unsafe` only in crates/sys, and there with its reason directly above.
pub fn unsafety(file: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut breaches = Vec::new();
    for (number, line) in code.lines().enumerate() {
        if !words(line).any(|w| w == "unsafe") {
            continue;
        }
        if !file.starts_with("crates/sys/") {
            breaches.push(format!(
                "{file}:{}: `unsafe` outside crates/sys",
                number + 1
            ));
        } else if !has_reason(&lines[..number]) {
            let line = number + 1;
            breaches.push(format!(
                "{file}:{line}: no `// SAFETY:` directly above `unsafe`"
            ));
        }
    }
    breaches
}

/// Whether the comment right above the statement that goes on after `above` gives one.
fn has_reason(above: &[&str]) -> bool {
    let is_comment = |line: &&&str| line.trim_start().starts_with("//");
    let statement_goes_on = |line: &&&str| {
        let line = line.trim_end();
        !line.is_empty() && !is_comment(&&line) && !line.ends_with([';', '{', '}', ','])
    };
    let mut up = above.iter().rev().peekable();
    while up.next_if(|line| statement_goes_on(line)).is_some() {}
    up.take_while(|line| is_comment(line))
        .any(|line| line.contains("// SAFETY:") || line.contains("/// # Safety"))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Crates outside `sys` forbid unsafe code at their root.
pub fn forbids_unsafe(file: &str, text: &str) -> Vec<String> {
    let is_root = file.ends_with("/src/lib.rs") || file.ends_with("/src/main.rs");
    if !is_root || file.starts_with("crates/sys/") || text.contains("#![forbid(unsafe_code)]") {
        return Vec::new();
    }
    vec![format!("{file}: #![forbid(unsafe_code)] is missing")]
}

pub const MAX_LINES: usize = 500;

pub fn size(file: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    if lines <= MAX_LINES {
        return Vec::new();
    }
    vec![format!("{file}: {lines} lines; split it below {MAX_LINES}")]
}

/// Words of unfinished work, put together here so that this file passes its own rule.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("todo", "!("),
    concat!("unimpl", "emented!("),
    concat!("#[", "ignore"),
];

pub fn finished(file: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in UNFINISHED.iter().filter(|w| line.contains(**w)) {
            breaches.push(format!("{file}:{}: `{word}`", number + 1));
        }
    }
    breaches
}

/// Only `main` ends the process: whoever calls anything else gets an error to handle.
pub fn exits(file: &str, text: &str) -> Vec<String> {
    let Some((_, module)) = place(file) else {
        return Vec::new();
    };
    let named = paths(text, &module);
    let exits = named.iter().filter(|p| {
        p.ends_with(&["process".into(), "exit".into()])
            || p.ends_with(&["process".into(), "abort".into()])
    });
    exits
        .map(|p| format!("{file}: {} below main", p.join("::")))
        .collect()
}

/// What `tracer/core` may not include: it runs inside the target under any host, so it
/// knows no host, and it neither prints, allocates nor locks through the C library.
const NOT_IN_CORE: &[&str] = &["stdio.h", "stdlib.h", "malloc.h", "pthread.h"];

/// `ours` are the headers of tracer/ and tracer/core.
pub fn core_includes(file: &str, text: &str, ours: &[String]) -> Vec<String> {
    if !file.starts_with("tracer/core/") {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for line in text.lines() {
        let Some(what) = included(line) else {
            continue;
        };
        let fine = match what {
            Include::Ours(name) => ours.iter().any(|o| o == name),
            Include::System(name) => !name.starts_with("dr") && !NOT_IN_CORE.contains(&name),
        };
        if !fine {
            breaches.push(format!(
                "{file}: tracer/core may not have `{}`",
                line.trim()
            ));
        }
    }
    breaches
}

enum Include<'a> {
    Ours(&'a str),
    System(&'a str),
}

fn included(line: &str) -> Option<Include<'_>> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("include")?.trim_start();
    if let Some(name) = rest.strip_prefix('"') {
        return Some(Include::Ours(name.split('"').next()?));
    }
    let name = rest.strip_prefix('<')?;
    Some(Include::System(name.split('>').next()?))
}

/// Sources, tests and documents that a text names in backquotes and that are not in the tree,
/// by the ends of their paths: `app/check.rs`, `map/threads/`. `NAME.rs` stands for any file of its folder.
pub fn missing_files(text: &str, files: &[&str]) -> Vec<String> {
    const ENDINGS: [&str; 6] = [".rs", ".c", ".h", ".md", ".ts", "/"];
    const ANY: [&str; 4] = ["NAME", "KIND", "GROUP", "VERB"];
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter(|word| {
        let path = word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        path && ENDINGS
            .iter()
            .any(|end| word.ends_with(end) && word.len() > end.len())
    });
    let alike = |(named, part): (&str, &str)| {
        let end = ANY.iter().find_map(|any| named.strip_prefix(any));
        named == part || end.is_some_and(|end| part.ends_with(end))
    };
    let is_there = |name: &str| {
        let parts: Vec<_> = name.trim_end_matches('/').rsplit('/').collect();
        files.iter().any(|file| {
            let tail: Vec<_> = file.rsplit('/').collect();
            let folders = if name.ends_with('/') {
                tail.len() - 1
            } else {
                0
            };
            let starts = folders.min(1)..=folders;
            starts.into_iter().any(|start| {
                let tail = &tail[start..];
                tail.len() >= parts.len()
                    && parts.iter().copied().zip(tail.iter().copied()).all(alike)
            })
        })
    };
    named
        .filter(|name| !is_there(name))
        .map(str::to_owned)
        .collect()
}

/// Rust files that the comments of a source name and that are not in the tree.
pub fn missing_sources(file: &str, text: &str, files: &[&str]) -> Vec<String> {
    let comments = text.lines().filter_map(|line| line.split_once("//"));
    let named = comments.flat_map(|(_, comment)| {
        comment.split(|c: char| !(c.is_ascii_alphanumeric() || "._/".contains(c)))
    });
    let named = named.map(|word| word.trim_end_matches('.'));
    let named = named.filter(|word| word.len() > 3 && word.ends_with(".rs"));
    let is_there = |name: &str| {
        files
            .iter()
            .any(|f| format!("/{f}").ends_with(&format!("/{name}")))
    };
    named
        .filter(|name| !is_there(name))
        .map(|name| format!("{file}: a comment names {name}, which is not there"))
        .collect()
}

/// Names of types and constants that a text has in backquotes and that no source knows.
pub fn missing_names(text: &str, sources: &[&str]) -> Vec<String> {
    let known: HashSet<&str> = sources.iter().flat_map(|source| words(source)).collect();
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter(|word| {
        let is_name = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name && word.starts_with(|c: char| c.is_ascii_uppercase())
    });
    named
        .filter(|name| !known.contains(name))
        .map(str::to_owned)
        .collect()
}
