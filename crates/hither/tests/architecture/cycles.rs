//! Which files name each other in a circle. A folder's `mod.rs` and what is in the folder may: they
//! are one object.
use crate::source::{paths, Path};
use std::collections::{BTreeMap, BTreeSet};

type Uses = BTreeMap<Path, BTreeSet<Path>>;

/// A file of a crate: its module, and its text.
pub type ModuleText<'a> = (Vec<&'a str>, &'a str);

/// The files of a crate that are in circles, each with those that it names there; tests left out.
pub fn import_cycles(files: &[ModuleText]) -> Vec<String> {
    let mut uses = Uses::new();
    let own = |module: &[&str]| -> Path {
        let crate_ = std::iter::once("crate".to_owned());
        crate_
            .chain(module.iter().map(ToString::to_string))
            .collect()
    };
    let modules: BTreeSet<Path> = files.iter().map(|(module, _)| own(module)).collect();
    for (module, text) in files
        .iter()
        .filter(|(module, _)| !module.contains(&"tests"))
    {
        let here = own(module);
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        let named = paths(code, module).into_iter().filter_map(|path| {
            let ends = (1..=path.len()).rev();
            ends.map(|end| path[..end].to_vec())
                .find(|p| modules.contains(p))
        });
        let beside = |other: &Path| !here.starts_with(other) && !other.starts_with(&here);
        uses.insert(here.clone(), named.filter(beside).collect());
    }
    while remove_ends(&mut uses) {}
    let names = |path: &Path| path[1..].join("/");
    let line = |(file, named): (&Path, &BTreeSet<Path>)| {
        let named: Vec<String> = named.iter().map(names).collect();
        format!("{} names {}", names(file), named.join(", "))
    };
    uses.iter().map(line).collect()
}

/// Takes out the files that name none of the others, or that none names; whether there were any.
fn remove_ends(uses: &mut Uses) -> bool {
    let before = uses.len();
    let left: BTreeSet<Path> = uses.keys().cloned().collect();
    uses.values_mut()
        .for_each(|named| named.retain(|n| left.contains(n)));
    let named: BTreeSet<Path> = uses.values().flatten().cloned().collect();
    uses.retain(|file, names| !names.is_empty() && named.contains(file));
    uses.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_folders_are_none() {
        let a = (vec!["a"], "use super::b::B; use super::d::D;");
        let b = (vec!["b"], "use crate::c::{C, E};");
        let c = (vec!["c"], "fn f(a: &super::a::A) {}");
        let d = (vec!["d"], "use std::fmt;");
        let found = import_cycles(&[a.clone(), b, c, d.clone()]);
        assert_eq!(found, ["a names b", "b names c", "c names a"]);
        let parent = (vec!["b"], "mod child; use child::X;");
        let child = (vec!["b", "child"], "use super::Y; use crate::d::D;");
        assert_eq!(import_cycles(&[a, parent, child, d]), [""; 0]);
    }
}
