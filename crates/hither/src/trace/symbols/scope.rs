//! The type of a variable as seen from an instruction: its function's locals and
//! parameters, then members of `this`, then the unit's globals.
use super::attrs::DieAttrs;
use super::dwarf::{for_each_child, DebugInfo, DieRef};
use super::lvalue::{Lvalue, LvalueStep};
use super::type_text::{strip_typedefs, type_text};

const MAX_BASES: u32 = 8;
const POINTER_BYTES: u64 = 8;
const BLOCKS: [gimli::DwTag; 2] = [
    gimli::DW_TAG_lexical_block,
    gimli::DW_TAG_inlined_subroutine,
];

/// The type of what `lvalue` receives at `pc`: for a pointer what it points to.
pub fn type_of(debug: &DebugInfo, pc: u64, lvalue: &Lvalue) -> Option<String> {
    with_types_of(debug, pc, lvalue, pointee)
}

/// Whether `lvalue` is a number or truth value that no pointer fits into: `ret` of `ret = deflateInit(&z, level)` is
/// what the call says of its success, not the block that it allocates.
pub fn is_plain_number(debug: &DebugInfo, pc: u64, lvalue: &Lvalue) -> bool {
    let plain = |debug: &DebugInfo, at| {
        let (_, tag, attrs) = strip_typedefs(debug, at)?;
        let number = [gimli::DW_TAG_base_type, gimli::DW_TAG_enumeration_type].contains(&tag);
        let narrow = attrs.size.is_some_and(|size| size < POINTER_BYTES);
        let real = ["double", "f64"].contains(&type_text(debug, Some(at)).text.as_str());
        Some(number && (narrow || real) && !is_fortran(debug, at.unit))
    };
    with_types_of(debug, pc, lvalue, plain).unwrap_or(false)
}

/// What `read` makes of the first type that `lvalue` can have at `pc` of which it makes something.
fn with_types_of<T>(
    debug: &DebugInfo,
    pc: u64,
    lvalue: &Lvalue,
    read: impl Fn(&DebugInfo, DieRef) -> Option<T>,
) -> Option<T> {
    let first = visible_variables(debug, pc, &lvalue.root);
    for start in first {
        let end = lvalue
            .steps
            .iter()
            .try_fold(start, |at, s| apply_step(debug, at, s));
        if let Some(found) = end.and_then(|at| read(debug, at)) {
            return Some(found);
        }
    }
    let this = LvalueStep::Member(lvalue.root.clone());
    let steps = || std::iter::once(&this).chain(&lvalue.steps);
    ["this", "self"].iter().find_map(|name| {
        let starts = visible_variables(debug, pc, name);
        starts.into_iter().find_map(|start| {
            let end = steps().try_fold(start, |at, s| apply_step(debug, at, s));
            read(debug, end?)
        })
    })
}

/// The text of a type, or of what it points to. `None` for what has no text.
pub fn pointee(debug: &DebugInfo, at: DieRef) -> Option<String> {
    let (here, tag, attrs) = strip_typedefs(debug, at)?;
    let inner = debug.referenced_die(here.unit, &attrs.type_);
    let text = match (tag, inner) {
        (gimli::DW_TAG_pointer_type, Some(target)) => type_text(debug, Some(target)).text,
        // `void *` says nothing about the block.
        (gimli::DW_TAG_pointer_type, None) => return None,
        (gimli::DW_TAG_reference_type, Some(target)) => return pointee(debug, target),
        _ => type_text(debug, Some(at)).text,
    };
    (!text.is_empty()).then_some(text)
}

/// Whether `name` is a local variable or parameter of the function at `pc`.
pub fn is_local(debug: &DebugInfo, pc: u64, name: &str) -> bool {
    let mut found = Variables::default();
    for unit in debug.units_at(pc) {
        let _ = collect_variables(debug, unit, pc, name, &mut found);
    }
    !found.locals.is_empty() || !found.elsewhere.is_empty()
}

/// Whether `name` is, in the function at `pc`, a member of the object whose method it is.
pub fn is_member(debug: &DebugInfo, pc: u64, name: &str) -> bool {
    let member = LvalueStep::Member(name.to_owned());
    let of = |this: DieRef| apply_step(debug, this, &member).is_some();
    !is_local(debug, pc, name) && visible_variables(debug, pc, "this").into_iter().any(of)
}

/// Types of the variables called `name` that `pc` can see, nearest first.
fn visible_variables(debug: &DebugInfo, pc: u64, name: &str) -> Vec<DieRef> {
    let mut found = Variables::default();
    for unit in debug.units_at(pc) {
        // An error ends the unit; what was found before it still counts.
        let _ = collect_variables(debug, unit, pc, name, &mut found);
    }
    // Deeper blocks come later in the file and hide outer ones.
    found.locals.reverse();
    let Variables {
        mut locals,
        elsewhere,
        globals,
    } = found;
    locals.extend(elsewhere);
    locals.extend(globals);
    locals
}

/// Types of variables of one name.
#[derive(Default)]
struct Variables {
    /// Of blocks with the instruction in them.
    locals: Vec<DieRef>,
    /// Of other blocks of its function.
    elsewhere: Vec<DieRef>,
    globals: Vec<DieRef>,
}

fn collect_variables(
    debug: &DebugInfo,
    unit: usize,
    pc: u64,
    name: &str,
    found: &mut Variables,
) -> gimli::Result<()> {
    let Some(parsed) = debug.unit(unit) else {
        return Ok(());
    };
    let mut raw = parsed.entries_raw(None)?;
    let mut attributes = Vec::new();
    // Depth of the function being read, and whether `pc` is in it; of a block that it is not in.
    let mut function: Option<(isize, bool)> = None;
    let mut other_block: Option<isize> = None;
    while !raw.is_empty() {
        let depth = raw.next_depth();
        let Some(abbreviation) = raw.read_abbreviation()? else {
            continue;
        };
        function = function.filter(|f| depth > f.0);
        other_block = other_block.filter(|block| depth > *block);
        let tag = abbreviation.tag();
        let is_block = function.is_some_and(|f| f.1) && BLOCKS.contains(&tag);
        let list = match (function, tag) {
            (None, gimli::DW_TAG_variable) => Some(&mut found.globals),
            (Some((_, true)), gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter) => {
                Some(match other_block {
                    None => &mut found.locals,
                    Some(_) => &mut found.elsewhere,
                })
            }
            (None, gimli::DW_TAG_subprogram) => None,
            _ if is_block && other_block.is_none() => None,
            _ => {
                raw.skip_attributes(abbreviation.attributes())?;
                continue;
            }
        };
        raw.read_attributes(abbreviation.attributes(), &mut attributes)?;
        let attrs = DieAttrs::from_attributes(&attributes);
        if let Some(list) = list {
            list.extend(variable_type(debug, unit, &attrs, name));
            continue;
        }
        let ranges = debug.address_ranges(unit, &attrs);
        let inside = ranges.iter().any(|r| r.0 <= pc && pc < r.1);
        match function {
            None => function = Some((depth, inside)),
            // A block without a range has all of its parent's.
            Some(_) => other_block = (!inside && !ranges.is_empty()).then_some(depth),
        }
    }
    Ok(())
}

/// The type of a variable entry, if it has that name, itself or by its origin.
fn variable_type(debug: &DebugInfo, unit: usize, attrs: &DieAttrs, name: &str) -> Option<DieRef> {
    let (mut unit, mut attrs) = (unit, attrs.clone());
    let mut type_at = debug.referenced_die(unit, &attrs.type_);
    for _ in 0..4 {
        if let Some(own) = debug.attribute_text(unit, &attrs.name) {
            // Fortran is written in either case.
            let same = own == name || own.eq_ignore_ascii_case(name) && is_fortran(debug, unit);
            return type_at.filter(|_| same);
        }
        let origin = debug.referenced_die(unit, &attrs.origin)?;
        (unit, attrs) = (origin.unit, debug.entry(origin)?.1);
        type_at = type_at.or_else(|| debug.referenced_die(unit, &attrs.type_));
    }
    None
}

fn is_fortran(debug: &DebugInfo, unit: usize) -> bool {
    super::type_text::language_family(debug, unit) == super::type_text::LanguageFamily::Fortran
}

fn apply_step(debug: &DebugInfo, at: DieRef, step: &LvalueStep) -> Option<DieRef> {
    let (here, tag, attrs) = strip_typedefs(debug, at)?;
    let inner = debug.referenced_die(here.unit, &attrs.type_);
    match step {
        LvalueStep::Index => {
            matches!(tag, gimli::DW_TAG_pointer_type | gimli::DW_TAG_array_type).then_some(inner)?
        }
        LvalueStep::Member(name) => {
            let mut at = here;
            // `a->b` and `a.b` alike; arrays for Fortran's `a(i)%b`.
            if tag != gimli::DW_TAG_structure_type && tag != gimli::DW_TAG_class_type {
                at = inner?;
            }
            find_member(debug, strip_typedefs(debug, at)?.0, name, MAX_BASES)
        }
    }
}

fn find_member(debug: &DebugInfo, of: DieRef, name: &str, depth: u32) -> Option<DieRef> {
    let mut found = None;
    let mut nested = Vec::new();
    for_each_child(debug, of, |die, tag, attrs| {
        let own = debug.attribute_text(die.unit, &attrs.name);
        let type_at = debug.referenced_die(die.unit, &attrs.type_);
        match tag {
            gimli::DW_TAG_member if own.as_deref() == Some(name) => found = type_at,
            gimli::DW_TAG_inheritance => nested.extend(type_at),
            // An anonymous struct or union.
            gimli::DW_TAG_member if own.is_none() => nested.extend(type_at),
            _ => {}
        }
        found.is_none()
    });
    if found.is_some() || depth == 0 {
        return found;
    }
    nested.truncate(16);
    nested
        .into_iter()
        .find_map(|base| find_member(debug, strip_typedefs(debug, base)?.0, name, depth - 1))
}
