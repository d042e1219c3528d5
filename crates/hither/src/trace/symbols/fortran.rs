//! Fortran COMMON blocks. Where gfortran gives the members no location, the block's ELF
//! symbol says where it starts, and members follow in order, each aligned to its own
//! elements (`-falign-commons`, the default).
use super::attrs::Attrs;
use super::dwarf::{Debug, Die, Offset};
use super::elf::Elf;
use super::statics::address;
use super::tree::Tree;
use super::types::{describe, strip};

/// The members of COMMON blocks that have no location of their own, with addresses.
pub fn common_members(elf: &Elf, debug: &Debug, unit: usize, tree: &Tree) -> Vec<(Die, u64)> {
    let mut found = Vec::new();
    let mut current: Option<(Offset, u64)> = None;
    for &offset in &tree.variables {
        let (Some((block_at, block)), Some(node)) =
            (tree.common_block(offset), tree.nodes.get(&offset))
        else {
            continue;
        };
        let next = match current {
            Some((at, next)) if at == block_at => Some(next),
            _ => start(elf, debug, unit, &block.attrs),
        };
        let Some(next) = next else { continue };
        let type_at = debug.target(unit, &node.attrs.type_);
        let align = type_at.map_or(1, |at| alignment(debug, at));
        let placed = address(debug, unit, &node.attrs.location);
        let vaddr = placed.unwrap_or_else(|| next.next_multiple_of(align));
        if placed.is_none() {
            found.push((Die { unit, offset }, vaddr));
        }
        let size = describe(debug, type_at).size;
        current = Some((block_at, vaddr.saturating_add(size).min(u64::MAX >> 1)));
    }
    found
}

fn start(elf: &Elf, debug: &Debug, unit: usize, block: &Attrs) -> Option<u64> {
    if let Some(vaddr) = address(debug, unit, &block.location) {
        return Some(vaddr);
    }
    let linkage = debug.text(unit, &block.linkage_name);
    let name = debug.text(unit, &block.name)?;
    let symbol = elf.objects.iter().find(|s| match &linkage {
        Some(linkage) => s.raw == *linkage,
        None => s.raw == name || s.raw.strip_suffix('_') == Some(&name),
    })?;
    Some(symbol.vaddr)
}

/// The size of an element, at most 16: how gfortran aligns a member. A structure is
/// aligned as its widest member.
fn alignment(debug: &Debug, at: Die) -> u64 {
    let mut at = at;
    for _ in 0..8 {
        let Some((here, tag, attrs)) = strip(debug, at) else {
            return 1;
        };
        let inner = debug.target(here.unit, &attrs.type_);
        match (tag, inner) {
            (gimli::DW_TAG_array_type, Some(element)) => at = element,
            (gimli::DW_TAG_string_type, _) => return 1,
            (gimli::DW_TAG_structure_type, _) => {
                let mut widest = 1;
                super::types::children(debug, here, |die, tag, attrs| {
                    if let (gimli::DW_TAG_member, Some(of)) =
                        (tag, debug.target(die.unit, &attrs.type_))
                    {
                        widest = widest.max(scalar(debug, of));
                    }
                    true
                });
                return widest;
            }
            _ => return scalar(debug, here),
        }
    }
    1
}

fn scalar(debug: &Debug, at: Die) -> u64 {
    let Some((here, tag, attrs)) = strip(debug, at) else {
        return 1;
    };
    if let (gimli::DW_TAG_array_type, Some(of)) = (tag, debug.target(here.unit, &attrs.type_)) {
        return strip(debug, of).map_or(1, |(at, ..)| power(describe(debug, Some(at)).size));
    }
    let described = describe(debug, Some(here));
    match described.text.starts_with("complex") {
        true => power(described.size / 2),
        false => power(described.size),
    }
}

fn power(size: u64) -> u64 {
    let capped = size.clamp(1, 16);
    1 << capped.ilog2()
}
