//! The licence texts of the crates that are linked into the program: most of their licences
//! ask that copies carry them.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::workspace::cargo_metadata;

/// What files with licences and notices are called.
const NAMES: [&str; 5] = ["licen", "copying", "notice", "copyright", "unlicense"];
const HEAD: &str = "The crates that are linked into bin/hither, and their licences.\n";

/// Each text once, under the crates that it is of.
///
/// # Errors
/// When cargo cannot list the crates or a text cannot be read.
pub fn of_crates() -> Result<String> {
    let metadata = cargo_metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"])?;
    let linked = linked(&metadata, "hither");
    let mut list = String::from(HEAD);
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in list_of(&metadata["packages"]) {
        // Those without a source are ours.
        if package["source"].is_null() || !linked.contains(text(&package["id"])) {
            continue;
        }
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        list += &format!("\n{name}: {}", text(&package["license"]));
        for text in texts_in(Path::new(text(&package["manifest_path"])))? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    for (text, crates) in texts {
        let line = "=".repeat(72);
        list += &format!(
            "\n\n{line}\n{}\n{line}\n\n{}",
            crates.join(", "),
            text.trim_end()
        );
    }
    Ok(list + "\n")
}

/// Ids of the package and of all that it needs when it runs.
fn linked<'a>(metadata: &'a Value, package: &str) -> BTreeSet<&'a str> {
    let nodes = list_of(&metadata["resolve"]["nodes"]);
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let mut packages = list_of(&metadata["packages"]);
    let start = packages.find(|p| p["source"].is_null() && p["name"] == package);
    let mut open: Vec<&str> = start.iter().map(|p| text(&p["id"])).collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        let Some(node) = nodes.get(id).filter(|_| linked.insert(id)) else {
            continue;
        };
        // A kind that is null is neither for building nor for tests.
        let needed = |dep: &&Value| list_of(&dep["dep_kinds"]).any(|kind| kind["kind"].is_null());
        open.extend(
            list_of(&node["deps"])
                .filter(needed)
                .map(|dep| text(&dep["pkg"])),
        );
    }
    linked
}

fn texts_in(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().unwrap_or(Path::new("/"));
    let unreadable = || format!("cannot read {}", folder.display());
    let mut texts = Vec::new();
    for file in fs::read_dir(folder).with_context(unreadable)? {
        let file = file.with_context(unreadable)?;
        let name = file.file_name().to_string_lossy().to_lowercase();
        if file.path().is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let bytes = fs::read(file.path()).with_context(unreadable)?;
            texts.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Ok(texts)
}

fn list_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_linked_is_what_is_needed_at_run_time() {
        let dep = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let needs = |id: &str, deps: Vec<Value>| json!({"id": id, "deps": deps});
        let metadata = json!({
            "packages": [{"name": "app", "id": "app", "source": null}],
            "resolve": {"nodes": [
                needs("app", vec![dep("a", Value::Null), dep("t", json!("dev"))]),
                needs("a", vec![dep("b", Value::Null), dep("m", json!("build"))]),
                needs("b", vec![dep("a", Value::Null)]),
                needs("t", vec![]),
            ]}
        });
        let found: Vec<&str> = linked(&metadata, "app").into_iter().collect();
        assert_eq!(found, ["a", "app", "b"]);
    }

    #[test]
    fn licences_and_notices_are_found_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "LICENSE-MIT",
            "License.txt",
            "NOTICE",
            "README.md",
            "lib.rs",
        ] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let mut texts = texts_in(&folder.path().join("Cargo.toml")).unwrap();
        texts.sort();
        assert_eq!(texts, ["LICENSE-MIT", "License.txt", "NOTICE"]);
    }
}
