//! Each rule on text that breaks it and on text that only looks as if it did.
use crate::rules;

fn check(rule: impl Fn(&str, &str) -> Vec<String>, cases: &[(&str, &str, usize)]) {
    for (file, text, breaches) in cases {
        let found = rule(file, text);
        assert_eq!(found.len(), *breaches, "{file}:\n{text}\n{found:?}");
    }
}

const TRACE: &str = "crates/hither/src/trace/elf.rs";
const APP: &str = "crates/hither/src/app/map/input.rs";
const METRICS: &str = "crates/model/src/metrics/phases.rs";
const FOLLOW: &str = "crates/hither/src/follow/procfs.rs";
const RUN: &str = "crates/hither/src/run/front.rs";
const AUTO: &str = "crates/hither/src/auto/engine.rs";
const FORMATS: &str = "crates/hither/src/formats/slurm.rs";
const SYS: &str = "crates/sys/src/process.rs";

#[test]
fn layering() {
    let cases = [
        (
            TRACE,
            "use hither_sys::wire; use hither_model::topology::Tree;",
            0,
        ),
        (TRACE, "use hither_model::metrics::phases;", 1),
        (
            TRACE,
            "use hither_model::{topology, metrics::{self, phases}};",
            2,
        ),
        (TRACE, "use crate::trace::{collect, names as n, x::y};", 0),
        (TRACE, "fn f() { crate::cli::print(); }", 1),
        (TRACE, "use super::super::metrics;", 1),
        (TRACE, "use super::{naming, super::map::Policy};", 1),
        (TRACE, "mod tests { use super::super::naming; }", 0),
        (TRACE, "mod tests { use super::super::super::map; }", 1),
        (TRACE, "mod a { fn f() {} } use super::super::map;", 1),
        ("crates/hither/src/trace/mod.rs", "use super::*;", 1),
        (
            TRACE,
            "// use crate::metrics;\n/* crate::map */ const S: &str = \"crate::map\";",
            0,
        ),
        (
            TRACE,
            "const R: &str = r#\"\" crate::map \"#; const C: char = '\"'; use crate::map;",
            1,
        ),
        (TRACE, "fn f<'a>(x: &'a str) { crate::map::g(x) }", 1),
        (METRICS, "use hither_profile::Profile;", 0),
        (METRICS, "use hither_sys::wire;", 1),
        (
            "crates/model/src/map/compact.rs",
            "use crate::simulate::Cost;",
            1,
        ),
        (
            "crates/model/src/map/scotch.rs",
            "use hither_scotch::map; use hither_sys::process;",
            1,
        ),
        (METRICS, "use hither_scotch::map;", 1),
        (
            "crates/hither/src/cli/stat.rs",
            "use crate::{metrics, trace};",
            0,
        ),
        (
            APP,
            "use crate::{auto, report, run, trace}; use hither_model::{map, simulate};",
            0,
        ),
        (APP, "use crate::cli::style;", 1),
        (APP, "fn f() { crate::cli::say(\"\") }", 1),
        (APP, "use super::super::super::cli::units;", 1),
        ("crates/hither/src/main.rs", "use crate::trace;", 1),
        (RUN, "use crate::follow::procfs;", 0),
        (AUTO, "use crate::follow::procfs;", 0),
        (RUN, "use crate::auto::Request;", 1),
        (AUTO, "use crate::run::Guide;", 1),
        (AUTO, "fn f() { super::super::run::front::run() }", 1),
        (FOLLOW, "use crate::{auto, run};", 2),
        (FORMATS, "use crate::run::MemoryPolicy;", 1),
        ("crates/hither/src/novelty.rs", "", 1),
        ("crates/profile/src/io.rs", "use crate::meta::Meta;", 0),
        ("crates/profile/src/io.rs", "use hither_sys::wire;", 1),
        (SYS, "use hither_profile::ThreadIx;", 0),
        ("xtask/src/main.rs", "use hither_profile::Profile;", 1),
        ("xtask/src/guest.rs", "use hither_guest::Guest;", 0),
        ("tests/guest/src/boot.rs", "use hither_sys::process;", 1),
        (TRACE, "use hither_guest::Guest;", 1),
        ("crates/hither/tests/trace.rs", "use hither_sys::wire;", 0),
    ];
    check(rules::layering, &cases);
}

#[test]
fn purity() {
    let cases = [
        (METRICS, "use std::collections::HashMap;", 0),
        (METRICS, "use std::{fs::File, time::Instant};", 2),
        (METRICS, "let now = std::time::Instant::now();", 1),
        (TRACE, "use std::fs;", 0),
    ];
    check(rules::purity, &cases);
}

#[test]
fn unsafety() {
    let cases = [
        (TRACE, "fn f() { unsafe { g() } }", 1),
        (TRACE, "#![forbid(unsafe_code)] // unsafe", 0),
        (SYS, "// SAFETY: it is open.\nunsafe { close(fd) };", 0),
        (
            SYS,
            "// SAFETY: it is open,\n// and ours.\nlet r =\n    unsafe { close(fd) };",
            0,
        ),
        (SYS, "unsafe { close(fd) };", 1),
        (SYS, "// It is open.\nunsafe { close(fd) };", 1),
        (SYS, "// SAFETY: it is open.\n\nunsafe { close(fd) };", 1),
        (
            SYS,
            "// SAFETY: it is open.\nf();\nunsafe { close(fd) };",
            1,
        ),
        (
            SYS,
            "/// # Safety\n/// The pointer is ours.\n#[inline]\npub unsafe fn f() {}",
            0,
        ),
    ];
    check(rules::unsafety, &cases);
    let roots = [
        ("crates/profile/src/lib.rs", "pub mod io;", 1),
        ("crates/profile/src/lib.rs", "#![forbid(unsafe_code)]", 0),
        ("crates/profile/src/io.rs", "", 0),
        ("crates/sys/src/lib.rs", "", 0),
    ];
    check(rules::forbids_unsafe, &roots);
}

#[test]
fn exits() {
    let cases = [
        (TRACE, "std::process::exit(2)", 1),
        (TRACE, "use std::process::{exit, Command};", 1),
        (TRACE, "use std::process::ExitCode;", 0),
    ];
    check(rules::exits, &cases);
}

#[test]
fn size() {
    let most = "\n".repeat(rules::MAX_LINES);
    check(rules::size, &[(TRACE, &most, 0)]);
    let more = most + "\n";
    check(rules::size, &[("tracer/core/cache_lean.c", &more, 1)]);
}

#[test]
fn finished() {
    let note = concat!("/* TO", "DO: later */\nint x;\n// FIX", "ME");
    let hole = concat!("fn f() { todo", "!() }\n#[", "ignore]\nfn g() {}");
    let cases = [(TRACE, note, 2), (TRACE, hole, 2), (TRACE, "// done", 0)];
    check(rules::finished, &cases);
}

#[test]
fn core_includes() {
    let core = "tracer/core/events.c";
    let ours = ["wire.h".to_string(), "state.h".to_string()];
    let cases = [
        (core, "#include \"state.h\"\n#include <string.h>", 0),
        (core, "#include \"dr_api.h\"", 1),
        (core, "# include <drmgr.h>", 1),
        (core, "#include \"../dynamorio/inline.h\"", 1),
        (core, "#include <stdio.h>", 1),
        ("tracer/dynamorio/client.c", "#include \"dr_api.h\"", 0),
    ];
    check(|file, text| rules::core_includes(file, text, &ours), &cases);
}

#[test]
fn missing_files() {
    let files = ["crates/a/src/b/c.rs", "docs/d.md"];
    let check = |text: &str, gone: &[&str]| {
        assert_eq!(rules::missing_files(text, &files), gone, "{text}");
    };
    check("`b/c.rs`, `c.rs`, `b/`, `d.md`, `x.json`, `a b.rs`", &[]);
    check("`x.rs` and `x/`, not x.c", &["x.rs", "x/"]);
    check("`/c.rs` `.rs`", &["/c.rs"]);
    check("`b/NAME.rs`, `src/VERB/c.rs`, `src/VERB/`", &[]);
    check(
        "`a/NAME.rs`, `b/NAME.ts`, `a/VERB/c.rs`, `b/VERB/`",
        &["a/NAME.rs", "b/NAME.ts", "a/VERB/c.rs", "b/VERB/"],
    );
}

#[test]
fn missing_sources() {
    let check = |text: &str, gone: usize| {
        let files = ["crates/a/src/b/c.rs"];
        assert_eq!(
            rules::missing_sources("f", text, &files).len(),
            gone,
            "{text}"
        );
    };
    check("//! `b/c.rs`: as c.rs.\nlet x = \"d.rs\"; // .rs", 0);
    check("/// a/c.rs and d.rs, x.c", 2);
}

#[test]
fn missing_names() {
    let source = ["const ALL: Kind = Kind::A; // Gone_"];
    let check = |text: &str, gone: &[&str]| {
        assert_eq!(rules::missing_names(text, &source), gone, "{text}");
    };
    check("`ALL` of `Kind`, `lower`, `NAME.md`, Other", &[]);
    check("`Gone` and `KIND`", &["Gone", "KIND"]);
}
