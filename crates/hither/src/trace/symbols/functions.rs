//! Functions by name, for `--only-functions` and its like.
use super::demangle::{demangle, unqualified};
use super::die_tree::{DieForest, DieTree};
use super::dwarf::{DebugInfo, DieRef};
use super::line_table::catch_panic;
use super::ModuleSymbols;
use std::collections::BTreeSet;

const MAX_SIMILAR: usize = 5;

/// Addresses of the functions called `name`: as linked, as written, or the last part of a
/// qualified name. Several when a name is overloaded or local to several files.
pub fn function_addresses(module: &ModuleSymbols, name: &str) -> Vec<u64> {
    let mut exact = BTreeSet::new();
    let mut partial = BTreeSet::new();
    for (readable, raw, vaddr) in all_functions(module) {
        if raw == name || readable == name {
            exact.insert(vaddr);
        } else if unqualified(&readable) == name || raw.strip_suffix('_') == Some(name) {
            partial.insert(vaddr);
        }
    }
    let found = if exact.is_empty() { partial } else { exact };
    found.into_iter().collect()
}

/// The names most like `name`, for messages.
pub fn similar_functions(module: &ModuleSymbols, name: &str) -> Vec<String> {
    let wanted: Vec<char> = name.to_lowercase().chars().take(64).collect();
    let mut ranked: Vec<(usize, String)> = all_functions(module)
        .into_iter()
        .filter_map(|(readable, ..)| {
            let own = unqualified(&readable).to_lowercase();
            let letters: Vec<char> = own.chars().take(64).collect();
            let apart = levenshtein(&wanted, &letters);
            let contains = name.len() > 2 && own.contains(&name.to_lowercase());
            (contains || apart <= wanted.len() / 3 + 1).then_some((apart, readable))
        })
        .collect();
    ranked.sort();
    ranked.dedup();
    ranked.into_iter().take(MAX_SIMILAR).map(|r| r.1).collect()
}

/// (readable, linked name, address) of each function.
fn all_functions(module: &ModuleSymbols) -> Vec<(String, String, u64)> {
    let symbols = module.elf.functions.iter();
    let mut found: Vec<_> = symbols
        .map(|s| (demangle(&s.raw), s.raw.clone(), s.vaddr))
        .collect();
    if let Some(debug) = &module.debug {
        found.extend(catch_panic(|| functions_from_dwarf(debug)).unwrap_or_default());
    }
    found
}

fn functions_from_dwarf(debug: &DebugInfo) -> Vec<(String, String, u64)> {
    let mut found = Vec::new();
    let mut forest = DieForest::new(debug);
    for unit in 0..debug.len() {
        let tree = DieTree::read(debug, unit);
        for &offset in &tree.subprograms {
            let Some(node) = tree.nodes.get(&offset) else {
                continue;
            };
            // The first range holds the entry point; others are cold parts.
            let ranges = debug.address_ranges(unit, &node.attrs);
            let Some((vaddr, _)) = ranges.first().copied().filter(|r| r.0 != 0) else {
                continue;
            };
            let linked = debug
                .attribute_text(unit, &node.attrs.linkage_name)
                .unwrap_or_default();
            found.extend(
                forest
                    .qualified_name(DieRef { unit, offset })
                    .map(|path| (path, linked, vaddr)),
            );
        }
    }
    found
}

/// Levenshtein distance.
fn levenshtein(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
