//! Qualified names: the entries of a unit that carry or contain names, with parents.
use super::attrs::DieAttrs;
use super::dwarf::{fixed_address, DebugInfo, DieOffset, DieRef, MAX_DEPTH};
use super::type_text::{language_family, LanguageFamily};
use std::collections::HashMap;

const MAX_HOPS: u32 = 32;
/// Units whose trees are kept: with link-time optimisation entries point across units.
const MAX_TREES: usize = 256;

pub struct DieNode {
    pub tag: gimli::DwTag,
    pub attrs: DieAttrs,
    parent: Option<DieOffset>,
}

/// The named entries of one unit.
#[derive(Default)]
pub struct DieTree {
    pub nodes: HashMap<DieOffset, DieNode>,
    /// Offsets of variables and members of COMMON blocks, in file order.
    pub variables: Vec<DieOffset>,
    pub subprograms: Vec<DieOffset>,
}

impl DieTree {
    pub fn read(debug: &DebugInfo, unit: usize) -> DieTree {
        let mut tree = DieTree::default();
        // An error ends the unit; what was read before it still counts.
        let _ = tree.walk(debug, unit);
        tree
    }

    fn walk(&mut self, debug: &DebugInfo, unit: usize) -> gimli::Result<()> {
        let Some(parsed) = debug.unit(unit) else {
            return Ok(());
        };
        let mut raw = parsed.entries_raw(None)?;
        let mut scopes: Vec<(isize, DieOffset)> = Vec::new();
        let mut attributes = Vec::new();
        while !raw.is_empty() {
            let (depth, offset) = (raw.next_depth(), raw.next_offset());
            let Some(abbreviation) = raw.read_abbreviation()? else {
                continue;
            };
            while scopes.last().is_some_and(|s| s.0 >= depth) {
                scopes.pop();
            }
            let tag = abbreviation.tag();
            let is_variable = tag == gimli::DW_TAG_variable || tag == gimli::DW_TAG_member;
            if depth > MAX_DEPTH || !(is_variable || is_scope(tag)) {
                raw.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            raw.read_attributes(abbreviation.attributes(), &mut attributes)?;
            let attrs = DieAttrs::from_attributes(&attributes);
            if tag == gimli::DW_TAG_member && attrs.member_at.is_some() {
                continue;
            }
            let location = &attrs.location;
            if location.is_some() && is_variable && fixed_address(debug, unit, location).is_none() {
                continue; // on the stack or in registers: most variables
            }
            if tag == gimli::DW_TAG_variable {
                self.variables.push(offset);
            } else if tag == gimli::DW_TAG_subprogram {
                self.subprograms.push(offset);
            }
            let parent = scopes.last().map(|s| s.1);
            self.nodes.insert(offset, DieNode { tag, attrs, parent });
            if !is_variable && abbreviation.has_children() {
                scopes.push((depth, offset));
            }
        }
        Ok(())
    }

    /// The COMMON block a variable belongs to.
    pub fn common_block(&self, offset: DieOffset) -> Option<(DieOffset, &DieNode)> {
        let parent = self.nodes.get(&offset)?.parent?;
        let node = self.nodes.get(&parent)?;
        (node.tag == gimli::DW_TAG_common_block).then_some((parent, node))
    }
}

fn is_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_module
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_subprogram
            | gimli::DW_TAG_common_block
    )
}

/// Trees of several units, read when first asked for.
pub struct DieForest<'a> {
    debug: &'a DebugInfo,
    trees: HashMap<usize, DieTree>,
}

impl<'a> DieForest<'a> {
    pub fn new(debug: &'a DebugInfo) -> Self {
        Self {
            debug,
            trees: HashMap::new(),
        }
    }

    pub fn tree(&mut self, unit: usize) -> &DieTree {
        if self.trees.len() >= MAX_TREES && !self.trees.contains_key(&unit) {
            self.trees.clear();
        }
        let debug = self.debug;
        let read = || DieTree::read(debug, unit);
        self.trees.entry(unit).or_insert_with(read)
    }

    /// Drops the tree of a unit that is done with: those of all units of a large program are
    /// hundreds of megabytes.
    pub fn forget(&mut self, unit: usize) {
        self.trees.remove(&unit);
    }

    /// The entry a definition refers to: its declaration or abstract instance.
    pub fn origin(&mut self, die: DieRef) -> Option<DieRef> {
        let debug = self.debug;
        let node = self.tree(die.unit).nodes.get(&die.offset)?;
        debug.referenced_die(die.unit, &node.attrs.origin)
    }

    /// `namespace::class::function::variable`.
    pub fn qualified_name(&mut self, die: DieRef) -> Option<String> {
        let mut names = Vec::new();
        let mut at = Some(die);
        for _ in 0..MAX_HOPS {
            let Some(here) = at else { break };
            let debug = self.debug;
            let Some(node) = self.tree(here.unit).nodes.get(&here.offset) else {
                break;
            };
            if let Some(origin) = debug.referenced_die(here.unit, &node.attrs.origin) {
                at = Some(origin);
                continue;
            }
            names.extend(entry_name(debug, here, node));
            // A COMMON block is one for the program, wherever it is declared.
            let is_block = node.tag == gimli::DW_TAG_common_block;
            let parent = node.parent.filter(|_| !is_block);
            at = parent.map(|offset| DieRef { offset, ..here });
        }
        names.reverse();
        let path = names.join("::");
        (!path.is_empty()).then_some(path)
    }
}

fn entry_name(debug: &DebugInfo, at: DieRef, node: &DieNode) -> Option<String> {
    let name = debug.attribute_text(at.unit, &node.attrs.name);
    match (name, node.tag) {
        // The Fortran main program: its variables are the program's.
        (Some(name), gimli::DW_TAG_subprogram) if name == "MAIN__" => None,
        (Some(name), gimli::DW_TAG_common_block) if name == "__BLNK__" => {
            Some("blank common".to_owned())
        }
        (None, gimli::DW_TAG_namespace)
            if language_family(debug, at.unit) != LanguageFamily::Rust =>
        {
            Some("(anonymous namespace)".to_owned())
        }
        (name, _) => name,
    }
}
