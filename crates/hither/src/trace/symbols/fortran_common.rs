//! Fortran COMMON blocks. Where gfortran gives the members no location, the block's ELF
//! symbol says where it starts, and members follow in order, each aligned to its own
//! elements (`-falign-commons`, the default).
use super::attrs::DieAttrs;
use super::die_tree::DieTree;
use super::dwarf::{fixed_address, for_each_child, DebugInfo, DieOffset, DieRef};
use super::elf::ElfImage;
use super::type_text::{strip_typedefs, type_text};

/// The members of COMMON blocks that have no location of their own, with addresses.
pub fn common_members(
    elf: &ElfImage,
    debug: &DebugInfo,
    unit: usize,
    tree: &DieTree,
) -> Vec<(DieRef, u64)> {
    let mut found = Vec::new();
    let mut current: Option<(DieOffset, u64)> = None;
    for &offset in &tree.variables {
        let (Some((block_at, block)), Some(node)) =
            (tree.common_block(offset), tree.nodes.get(&offset))
        else {
            continue;
        };
        let next = match current {
            Some((at, next)) if at == block_at => Some(next),
            _ => common_block_address(elf, debug, unit, &block.attrs),
        };
        let Some(next) = next else { continue };
        let type_at = debug.referenced_die(unit, &node.attrs.type_);
        let align = type_at.map_or(1, |at| member_alignment(debug, at));
        let placed = fixed_address(debug, unit, &node.attrs.location);
        let vaddr = placed.unwrap_or_else(|| next.next_multiple_of(align));
        if placed.is_none() {
            found.push((DieRef { unit, offset }, vaddr));
        }
        let size = type_text(debug, type_at).size;
        current = Some((block_at, vaddr.saturating_add(size).min(u64::MAX >> 1)));
    }
    found
}

fn common_block_address(
    elf: &ElfImage,
    debug: &DebugInfo,
    unit: usize,
    block: &DieAttrs,
) -> Option<u64> {
    if let Some(vaddr) = fixed_address(debug, unit, &block.location) {
        return Some(vaddr);
    }
    let linkage = debug.attribute_text(unit, &block.linkage_name);
    let name = debug.attribute_text(unit, &block.name)?;
    let symbol = elf.objects.iter().find(|s| match &linkage {
        Some(linkage) => s.raw == *linkage,
        None => s.raw == name || s.raw.strip_suffix('_') == Some(&name),
    })?;
    Some(symbol.vaddr)
}

/// The size of an element, at most 16: how gfortran aligns a member. A structure is
/// aligned as its widest member.
fn member_alignment(debug: &DebugInfo, at: DieRef) -> u64 {
    let mut at = at;
    for _ in 0..8 {
        let Some((here, tag, attrs)) = strip_typedefs(debug, at) else {
            return 1;
        };
        let inner = debug.referenced_die(here.unit, &attrs.type_);
        match (tag, inner) {
            (gimli::DW_TAG_array_type, Some(element)) => at = element,
            (gimli::DW_TAG_string_type, _) => return 1,
            (gimli::DW_TAG_structure_type, _) => {
                let mut widest = 1;
                for_each_child(debug, here, |die, tag, attrs| {
                    if let (gimli::DW_TAG_member, Some(of)) =
                        (tag, debug.referenced_die(die.unit, &attrs.type_))
                    {
                        widest = widest.max(scalar_alignment(debug, of));
                    }
                    true
                });
                return widest;
            }
            _ => return scalar_alignment(debug, here),
        }
    }
    1
}

fn scalar_alignment(debug: &DebugInfo, at: DieRef) -> u64 {
    let Some((here, tag, attrs)) = strip_typedefs(debug, at) else {
        return 1;
    };
    if let (gimli::DW_TAG_array_type, Some(of)) =
        (tag, debug.referenced_die(here.unit, &attrs.type_))
    {
        return strip_typedefs(debug, of).map_or(1, |(at, ..)| {
            floor_power_of_two(type_text(debug, Some(at)).size)
        });
    }
    let described = type_text(debug, Some(here));
    match described.text.starts_with("complex") {
        true => floor_power_of_two(described.size / 2),
        false => floor_power_of_two(described.size),
    }
}

fn floor_power_of_two(size: u64) -> u64 {
    let capped = size.clamp(1, 16);
    1 << capped.ilog2()
}
