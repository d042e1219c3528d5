//! Placeholder for the symbols module: replaced when it lands.
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};

use super::naming::{AllocationName, Naming, SourceLine, StaticObject};

fn functions(path: &Path) -> anyhow::Result<Vec<(String, u64)>> {
    let data = std::fs::read(path)?;
    let file = object::File::parse(&*data)?;
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let functions = symbols.filter(|s| s.kind() == object::SymbolKind::Text && s.is_definition());
    let named = functions.filter_map(|s| Some((s.name().ok()?.to_string(), s.address())));
    Ok(named.collect())
}

pub fn function(path: &Path, name: &str) -> anyhow::Result<Vec<u64>> {
    let mut found = functions(path)?;
    found.retain(|(n, _)| n == name);
    found.dedup();
    anyhow::ensure!(!found.is_empty(), "no function {name}");
    Ok(found.into_iter().map(|(_, at)| at).collect())
}

pub fn similar_functions(path: &Path, name: &str) -> Vec<String> {
    let mut found = functions(path).unwrap_or_default();
    found.retain(|(n, _)| n.len() == name.len() && n.starts_with(&name[..1]));
    found.into_iter().map(|(n, _)| n).collect()
}

#[derive(Default)]
pub struct Symbols {}

impl Naming for Symbols {
    fn statics(&mut self, _: &Path) -> Vec<StaticObject> {
        Vec::new()
    }
    fn line(&mut self, _: &Path, _: u64) -> Option<SourceLine> {
        None
    }
    fn allocation(&mut self, _: &[(PathBuf, u64)]) -> AllocationName {
        AllocationName::default()
    }
}
