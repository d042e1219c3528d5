//! Variables with a fixed address: from DWARF, completed by ELF symbols.
use super::attrs::DieAttrs;
use super::demangle::demangle;
use super::die_tree::{DieForest, DieTree};
use super::dwarf::{fixed_address, for_each_child, DebugInfo, DieRef};
use super::elf::ElfImage;
use super::fortran_common;
use super::type_text::type_text;
use crate::trace::symbolizer::{StaticObject, StructField};

const MAX_OBJECTS: usize = 1 << 20;

/// A static object and the type that members are looked up in.
#[derive(Clone, Debug)]
pub struct TypedStatic {
    pub object: StaticObject,
    pub type_at: Option<DieRef>,
}

/// All static objects of a file, by address.
pub fn read_statics(elf: &ElfImage, debug: Option<&DebugInfo>) -> Vec<TypedStatic> {
    let mut found = debug.map_or_else(Vec::new, |debug| statics_from_dwarf(elf, debug));
    found.sort_by(|a, b| preference(&a.object).cmp(&preference(&b.object)));
    // One owner per byte: where descriptions overlap (differing layouts of a COMMON
    // block), the one that begins first.
    let mut end = 0;
    found.retain(|f| {
        let own = f.object.size > 0 && f.object.vaddr >= end;
        end = if own {
            f.object.vaddr + f.object.size
        } else {
            end
        };
        own
    });
    let extra = statics_from_symbols(elf, &found);
    found.extend(extra);
    found.sort_by_key(|f| f.object.vaddr);
    found
}

/// Of several descriptions of one address, the most telling first.
fn preference(o: &StaticObject) -> (u64, bool, bool, &str, &str, u32) {
    (o.vaddr, o.size == 0, o.line == 0, &o.name, &o.file, o.line)
}

/// ELF symbols at addresses that no DWARF variable covers.
fn statics_from_symbols(elf: &ElfImage, found: &[TypedStatic]) -> Vec<TypedStatic> {
    let mut extra = Vec::new();
    let mut last = 0;
    for s in elf.objects.iter().take(MAX_OBJECTS) {
        let end = s.vaddr.saturating_add(s.size);
        let at = found.partition_point(|f| f.object.vaddr + f.object.size <= s.vaddr);
        let covered = found.get(at).is_some_and(|f| f.object.vaddr < end);
        if covered || s.vaddr < last || !elf.is_loaded(s.vaddr, s.size) {
            continue;
        }
        last = end;
        extra.push(TypedStatic {
            object: StaticObject {
                name: declared_name(demangle(&s.raw)),
                vaddr: s.vaddr,
                size: s.size,
                ..StaticObject::default()
            },
            type_at: None,
        });
    }
    extra
}

fn statics_from_dwarf(elf: &ElfImage, debug: &DebugInfo) -> Vec<TypedStatic> {
    let mut found = Vec::new();
    let mut forest = DieForest::new(debug);
    for unit in 0..debug.len() {
        for (die, vaddr) in placed_variables(elf, debug, unit, forest.tree(unit)) {
            found.extend(object(elf, debug, &mut forest, die, vaddr));
        }
        forest.forget(unit);
        debug.forget(unit);
        if found.len() > MAX_OBJECTS {
            break;
        }
    }
    found
}

/// What Rust's `thread_local!` declares is called after it, and not after the macro's inside.
fn declared_name(name: String) -> String {
    let Some(mut path) = name.strip_suffix("::__RUST_STD_INTERNAL_VAL") else {
        return name;
    };
    while let Some((outer, _)) = path
        .rsplit_once("::")
        .filter(|(_, last)| last.starts_with('{'))
    {
        path = outer;
    }
    path.to_owned()
}

/// The variables of a unit that have a fixed address, with it.
fn placed_variables(
    elf: &ElfImage,
    debug: &DebugInfo,
    unit: usize,
    tree: &DieTree,
) -> Vec<(DieRef, u64)> {
    let mut placed = Vec::new();
    for &offset in &tree.variables {
        let Some(node) = tree.nodes.get(&offset) else {
            continue;
        };
        let vaddr = fixed_address(debug, unit, &node.attrs.location);
        let fits = |v: &u64| !node.attrs.artificial && elf.is_loaded(*v, 1);
        if let Some(vaddr) = vaddr.filter(fits) {
            placed.push((DieRef { unit, offset }, vaddr));
        }
    }
    placed.extend(fortran_common::common_members(elf, debug, unit, tree));
    placed
}

fn object(
    elf: &ElfImage,
    debug: &DebugInfo,
    forest: &mut DieForest,
    die: DieRef,
    vaddr: u64,
) -> Option<TypedStatic> {
    let mut attrs = forest.tree(die.unit).nodes.get(&die.offset)?.attrs.clone();
    let name = declared_name(forest.qualified_name(die)?);
    // What the definition leaves out, its declaration says.
    let (mut type_unit, mut file_unit) = (die.unit, die.unit);
    let mut at = die;
    for _ in 0..4 {
        let Some(origin) = forest.origin(at) else {
            break;
        };
        let Some(node) = forest.tree(origin.unit).nodes.get(&origin.offset) else {
            break;
        };
        if attrs.type_.is_none() {
            (attrs.type_, type_unit) = (node.attrs.type_.clone(), origin.unit);
        }
        if attrs.file.is_none() {
            (attrs.file, file_unit) = (node.attrs.file, origin.unit);
        }
        attrs.line = attrs.line.or(node.attrs.line);
        at = origin;
    }
    let type_at = debug.referenced_die(type_unit, &attrs.type_);
    let described = type_text(debug, type_at);
    let symbol = || elf.object_at(vaddr).map_or(0, |s| s.size);
    let size = Some(described.size)
        .filter(|s| *s > 0)
        .unwrap_or_else(symbol);
    let file = attrs
        .file
        .and_then(|index| debug.file_name(file_unit, index));
    elf.is_loaded(vaddr, size).then_some(TypedStatic {
        object: StaticObject {
            name,
            type_name: described.text,
            vaddr,
            size,
            file: file.unwrap_or_default(),
            line: attrs.line.unwrap_or(0),
        },
        type_at,
    })
}

/// The fields of a structure or of the elements of an array of them.
pub fn members(debug: &DebugInfo, type_at: DieRef) -> Vec<StructField> {
    const MAX_MEMBERS: usize = 4096;
    let mut at = type_at;
    for _ in 0..8 {
        let Some((here, tag, attrs)) = super::type_text::strip_typedefs(debug, at) else {
            return Vec::new();
        };
        at = here;
        match debug.referenced_die(here.unit, &attrs.type_) {
            Some(element) if tag == gimli::DW_TAG_array_type => at = element,
            _ => break,
        }
    }
    let mut found = Vec::new();
    for_each_child(debug, at, |die, tag, attrs: &DieAttrs| {
        if let (gimli::DW_TAG_member, Some(offset)) = (tag, attrs.member_at) {
            let described = type_text(debug, debug.referenced_die(die.unit, &attrs.type_));
            found.push(StructField {
                name: debug
                    .attribute_text(die.unit, &attrs.name)
                    .unwrap_or_default(),
                offset,
                size: described.size,
                type_name: described.text,
            });
        }
        found.len() < MAX_MEMBERS
    });
    found
}
