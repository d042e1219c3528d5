//! The page in Debian's chromium, driven by the scripts in report-ui/test. Where node,
//! chromium or the packages of `npm ci` are missing, each test says so and does nothing.
use super::page;
use super::planted::{Planted, HOT};
use hither_profile::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

const PLANTED: Planted = Planted {
    threads: 16,
    pages: 20_000,
    users: 16,
    slices: 240,
    hot: 12,
};

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../report-ui")
}

fn missing() -> Option<&'static str> {
    let runs = |program| Command::new(program).arg("--version").output().is_ok();
    if !runs("node") {
        Some("node is not installed")
    } else if !runs("chromium") {
        Some("chromium is not installed")
    } else if !ui().join("node_modules/playwright-core").is_dir() {
        Some("`npm ci` was not run in report-ui")
    } else {
        None
    }
}

/// One browser at a time: several would only slow one another.
static BROWSER: Mutex<()> = Mutex::new(());

/// Runs a script on a page; `expected` is what it compares with.
fn check(script: &str, page: &Path, expected: serde_json::Value) {
    let _alone = BROWSER.lock();
    let out = Command::new("node")
        .arg("--test-reporter=tap")
        .arg(ui().join("test").join(script))
        .env("HITHER_PAGE", page)
        .env("HITHER_EXPECTED", expected.to_string())
        .output()
        .expect("node runs");
    let text = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{script}\n{text}\n{errors}");
    // A script that runs no test has shown nothing.
    assert!(
        text.contains("# pass") && !text.contains("# pass 0"),
        "{text}"
    );
}

fn browser(script: &str, profile: &Profile, expected: serde_json::Value) {
    if let Some(why) = missing() {
        eprintln!("skipped: {why}");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    check(script, &page(dir.path(), profile), expected);
}

#[test]
fn every_section_renders() {
    browser("sections.mjs", &PLANTED.profile(), serde_json::json!({}));
}

#[test]
fn the_matrix_is_ordered_scaled_and_cut_in_time() {
    let expected = serde_json::json!({ "threads": PLANTED.threads, "slices": PLANTED.slices });
    browser("matrix.mjs", &PLANTED.profile(), expected);
}

#[test]
fn hot_cells_are_seen_at_every_zoom() {
    let expected = serde_json::json!({
        "cells": PLANTED.cells(), "count": HOT,
        "pages": PLANTED.pages, "threads": PLANTED.threads,
    });
    browser("hot.mjs", &PLANTED.profile(), expected);
}

const HOSTILE: &str =
    "</script><script>window.taken = 1</script><img src=x onerror='window.taken=1'>";

#[test]
fn hostile_names_do_no_harm() {
    let mut profile = PLANTED.profile();
    let long = "n".repeat(10_000);
    profile.meta.command = vec![HOSTILE.to_owned(), long.clone()];
    profile.threads[1].name = HOSTILE.to_owned();
    profile.threads[2].name = long.clone();
    profile.meta.processes[0].executable = long.clone();
    profile.meta.limits = vec![HOSTILE.to_owned(), long.clone()];
    let hostile = |name: &str| Object {
        name: name.to_owned(),
        type_name: name.to_owned(),
        file: name.to_owned(),
        function: name.to_owned(),
        ..profile.objects[0].clone()
    };
    let names = [
        HOSTILE,
        &long,
        "=HYPERLINK(\"http://x\")",
        "\u{202e}txt.exe",
    ];
    let objects: Vec<Object> = names.iter().map(|name| hostile(name)).collect();
    profile.objects.extend(objects);
    browser(
        "hostile.mjs",
        &profile,
        serde_json::json!({ "rows": names.len() + 1 }),
    );
}

/// A page needs a profile, not much of one.
#[test]
fn empty_profiles_have_a_page() {
    let nothing = Profile {
        meta: ProfileMeta {
            format: FORMAT_VERSION,
            ..ProfileMeta::default()
        },
        ..Profile::default()
    };
    browser(
        "sections.mjs",
        &nothing,
        serde_json::json!({ "empty": true }),
    );
    let one = Planted {
        threads: 1,
        pages: 2,
        users: 1,
        slices: 1,
        hot: 1,
    };
    browser(
        "sections.mjs",
        &one.profile(),
        serde_json::json!({ "empty": true }),
    );
}

#[test]
fn the_sample_shows_its_findings_what_changed_and_what_is_predicted() {
    let dir = tempfile::tempdir().expect("a folder");
    if let Some(why) = missing() {
        eprintln!("skipped: {why}");
        return;
    }
    let page = page(dir.path(), &PLANTED.profile());
    check("findings.mjs", &page, serde_json::json!({}));
    check("comparison.mjs", &page, serde_json::json!({}));
    check("prediction.mjs", &page, serde_json::json!({}));
}

#[test]
fn the_bundle_is_current_and_typed() {
    if missing().is_some_and(|why| why != "chromium is not installed") {
        eprintln!("skipped: node is not installed, or `npm ci` was not run in report-ui");
        return;
    }
    let run = |args: &[&str]| {
        let out = Command::new("node").args(args).current_dir(ui()).output();
        let out = out.expect("node runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let errors = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "node {args:?}\n{text}{errors}");
    };
    run(&["build.mjs", "--check"]);
    run(&["node_modules/typescript/bin/tsc", "--noEmit"]);
}
