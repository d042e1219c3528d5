//! Qualified names: the entries of a unit that carry or contain names, with parents.
use super::attrs::Attrs;
use super::dwarf::{Debug, Die, Offset, MAX_DEPTH};
use super::types::{family, Family};
use std::collections::HashMap;

const MAX_HOPS: u32 = 32;
/// Units whose trees are kept: with link-time optimisation entries point across units.
const MAX_TREES: usize = 256;

pub struct Node {
    pub tag: gimli::DwTag,
    pub attrs: Attrs,
    parent: Option<Offset>,
}

/// The named entries of one unit.
#[derive(Default)]
pub struct Tree {
    pub nodes: HashMap<Offset, Node>,
    /// Offsets of variables and members of COMMON blocks, in file order.
    pub variables: Vec<Offset>,
    pub subprograms: Vec<Offset>,
}

impl Tree {
    pub fn read(debug: &Debug, unit: usize) -> Tree {
        let mut tree = Tree::default();
        // An error ends the unit; what was read before it still counts.
        let _ = tree.walk(debug, unit);
        tree
    }

    fn walk(&mut self, debug: &Debug, unit: usize) -> gimli::Result<()> {
        let Some(parsed) = debug.unit(unit) else {
            return Ok(());
        };
        let mut raw = parsed.entries_raw(None)?;
        let mut scopes: Vec<(isize, Offset)> = Vec::new();
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
            let attrs = Attrs::of(&attributes);
            if tag == gimli::DW_TAG_member && attrs.member_at.is_some() {
                continue;
            }
            if tag == gimli::DW_TAG_variable {
                self.variables.push(offset);
            } else if tag == gimli::DW_TAG_subprogram {
                self.subprograms.push(offset);
            }
            let parent = scopes.last().map(|s| s.1);
            self.nodes.insert(offset, Node { tag, attrs, parent });
            if !is_variable && abbreviation.has_children() {
                scopes.push((depth, offset));
            }
        }
        Ok(())
    }

    /// The COMMON block a variable belongs to.
    pub fn common_block(&self, offset: Offset) -> Option<(Offset, &Node)> {
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
pub struct Forest<'a> {
    debug: &'a Debug,
    trees: HashMap<usize, Tree>,
}

impl<'a> Forest<'a> {
    pub fn new(debug: &'a Debug) -> Self {
        Self {
            debug,
            trees: HashMap::new(),
        }
    }

    pub fn tree(&mut self, unit: usize) -> &Tree {
        if self.trees.len() >= MAX_TREES && !self.trees.contains_key(&unit) {
            self.trees.clear();
        }
        let debug = self.debug;
        let read = || Tree::read(debug, unit);
        self.trees.entry(unit).or_insert_with(read)
    }

    /// The entry a definition refers to: its declaration or abstract instance.
    pub fn origin(&mut self, die: Die) -> Option<Die> {
        let debug = self.debug;
        let node = self.tree(die.unit).nodes.get(&die.offset)?;
        debug.target(die.unit, &node.attrs.origin)
    }

    /// `namespace::class::function::variable`.
    pub fn path(&mut self, die: Die) -> Option<String> {
        let mut names = Vec::new();
        let mut at = Some(die);
        for _ in 0..MAX_HOPS {
            let Some(here) = at else { break };
            let debug = self.debug;
            let Some(node) = self.tree(here.unit).nodes.get(&here.offset) else {
                break;
            };
            if let Some(origin) = debug.target(here.unit, &node.attrs.origin) {
                at = Some(origin);
                continue;
            }
            names.extend(own_name(debug, here, node));
            // A COMMON block is one for the program, wherever it is declared.
            let is_block = node.tag == gimli::DW_TAG_common_block;
            let parent = node.parent.filter(|_| !is_block);
            at = parent.map(|offset| Die { offset, ..here });
        }
        names.reverse();
        let path = names.join("::");
        (!path.is_empty()).then_some(path)
    }
}

fn own_name(debug: &Debug, at: Die, node: &Node) -> Option<String> {
    let name = debug.text(at.unit, &node.attrs.name);
    match (name, node.tag) {
        // The Fortran main program: its variables are the program's.
        (Some(name), gimli::DW_TAG_subprogram) if name == "MAIN__" => None,
        (Some(name), gimli::DW_TAG_common_block) if name == "__BLNK__" => {
            Some("blank common".to_owned())
        }
        (None, gimli::DW_TAG_namespace) if family(debug, at.unit) != Family::Rust => {
            Some("(anonymous namespace)".to_owned())
        }
        (name, _) => name,
    }
}
