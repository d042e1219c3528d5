//! The layering of docs/ARCHITECTURE.md and the countable part of the house style,
//! checked on the sources. `rules` holds the rules, `bad_snippets` shows that each of
//! them can fail.
mod bad_snippets;
mod cycles;
mod rules;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders with sources of ours; those that a checkout lacks are passed over.
const FOLDERS: &[&str] = &[
    "crates",
    "tests",
    "xtask",
    "tracer",
    "workloads",
    "bench",
    "report-ui/src",
];

struct File {
    name: String,
    text: String,
}

fn sources(extensions: &[&str]) -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root, folder, extensions, &mut files);
    }
    files
}

fn collect(root: &Path, folder: &str, extensions: &[&str], files: &mut Vec<File>) {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return;
    };
    for entry in entries {
        let entry = entry.expect("a listing that can be read");
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() {
            collect(root, &name, extensions, files);
        } else if path
            .extension()
            .is_some_and(|e| extensions.iter().any(|x| e == *x))
        {
            let text = fs::read_to_string(&path).expect("a source in UTF-8");
            files.push(File { name, text });
        }
    }
}

fn check(extensions: &[&str], rule: impl Fn(&str, &str) -> Vec<String>) {
    let files = sources(extensions);
    assert!(
        !files.is_empty(),
        "no sources found: the check would be empty"
    );
    let breaches: Vec<String> = files.iter().flat_map(|f| rule(&f.name, &f.text)).collect();
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}

#[test]
fn every_layer_uses_only_what_is_below_it() {
    check(&["rs"], rules::layering);
}

/// A reader who starts at one of two such files needs the other first.
#[test]
fn no_files_name_each_other_in_a_circle() {
    let files = sources(&["rs"]);
    let mut crates: BTreeMap<String, Vec<cycles::ModuleText>> = BTreeMap::new();
    for file in &files {
        if let Some((layer, module)) = rules::place(&file.name) {
            let own = layer.split('/').next().unwrap_or_default();
            let texts = crates.entry(own.to_owned()).or_default();
            texts.push((module, file.text.as_str()));
        }
    }
    assert!(crates.len() >= 4, "{:?}", crates.keys());
    let circles = crates
        .values()
        .flat_map(|files| cycles::import_cycles(files));
    let circles: Vec<String> = circles.collect();
    assert!(circles.is_empty(), "\n{}", circles.join("\n"));
}

/// A row for what is gone would let anything use it that is called so later.
#[test]
fn every_layer_exists() {
    let files = sources(&["rs"]);
    let places = files.iter().filter_map(|f| rules::place(&f.name));
    let there: Vec<String> = places.map(|(layer, _)| layer).collect();
    let known = rules::LAYERS.iter().map(|layer| layer.name.to_owned());
    let gone: Vec<String> = known.filter(|name| !there.contains(name)).collect();
    assert!(gone.is_empty(), "rows of LAYERS without sources: {gone:?}");
}

#[test]
fn the_core_is_pure() {
    check(&["rs"], rules::purity);
}

#[test]
fn unsafe_code_is_in_sys_and_says_why() {
    check(&["rs"], rules::unsafety);
    check(&["rs"], rules::forbids_unsafe);
}

#[test]
fn nothing_below_main_ends_the_process() {
    check(&["rs"], rules::exits);
}

#[test]
fn files_are_small() {
    check(
        &["rs", "c", "h", "cpp", "f90", "py", "ts", "css"],
        rules::size,
    );
}

#[test]
fn nothing_is_left_unfinished() {
    check(
        &["rs", "c", "h", "cpp", "f90", "py", "toml", "ts", "css"],
        rules::finished,
    );
}

#[test]
fn the_tracers_core_knows_no_host() {
    let headers: Vec<String> = sources(&["h"])
        .iter()
        .filter_map(|f| {
            let inside = f.name.strip_prefix("tracer/")?;
            let name = inside.strip_prefix("core/").unwrap_or(inside);
            (!name.contains('/')).then(|| name.to_string())
        })
        .collect();
    check(&["c", "h"], |file, text| {
        rules::core_includes(file, text, &headers)
    });
}

/// What is put into other people's programs is built from what can be read.
#[test]
fn no_compiled_code_is_kept_beside_the_tracer() {
    fn files_in(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder of the tracer");
        let paths = entries.map(|entry| entry.expect("a listing that can be read").path());
        let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
        let inside = folders.iter().flat_map(|folder| files_in(folder));
        let files = files.iter().map(|file| file.display().to_string());
        files.chain(inside).collect()
    }
    let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer");
    let sources = [".c", ".h", ".ld", ".patch"];
    let mut other = files_in(&tracer);
    other.retain(|name| !sources.iter().any(|end| name.ends_with(end)));
    assert!(
        other.is_empty(),
        "neither C, nor a linker script, nor a patch: {other:?}"
    );
}

/// The documents that send a reader through the tree name files, types and constants that
/// are there.
#[test]
fn documents_name_what_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listing = Command::new("git")
        .arg("ls-files")
        .current_dir(&root)
        .output();
    let Ok(listing) = listing else { return };
    let listing = String::from_utf8_lossy(&listing.stdout);
    let files: Vec<&str> = listing.lines().collect();
    if files.is_empty() {
        println!("skipped: not a checkout of git");
        return;
    }
    let sources = sources(&["rs", "c", "h", "ts"]);
    let sources: Vec<&str> = sources.iter().map(|file| file.text.as_str()).collect();
    for document in ["docs/ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(document)).expect("a document");
        let gone = [
            rules::missing_files(&text, &files),
            rules::missing_names(&text, &sources),
        ]
        .concat();
        assert!(
            gone.is_empty(),
            "{document} names what is not there: {gone:?}"
        );
    }
}

/// So do comments: a file that was renamed is named by its new name.
#[test]
fn comments_name_files_that_exist() {
    let files = sources(&["rs"]);
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    check(&["rs"], |file, text| {
        // Its texts are breaches.
        match file.ends_with("bad_snippets.rs") || file.ends_with("architecture/rules.rs") {
            true => Vec::new(),
            false => rules::missing_sources(file, text, &names),
        }
    });
}
