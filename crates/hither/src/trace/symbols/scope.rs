//! The type of a variable as seen from an instruction: its function's locals and
//! parameters, then members of `this`, then the unit's globals.
use super::attrs::Attrs;
use super::dwarf::{Debug, Die};
use super::source::{Lvalue, Step};
use super::types::{children, describe, strip};

const MAX_BASES: u32 = 8;

/// The type of what `lvalue` receives at `pc`: for a pointer what it points to.
pub fn type_of(debug: &Debug, pc: u64, lvalue: &Lvalue) -> Option<String> {
    let first = variables(debug, pc, &lvalue.root);
    for start in first {
        let end = lvalue
            .steps
            .iter()
            .try_fold(start, |at, s| step(debug, at, s));
        if let Some(text) = end.and_then(|at| pointee(debug, at)) {
            return Some(text);
        }
    }
    let this = Step::Member(lvalue.root.clone());
    let steps = || std::iter::once(&this).chain(&lvalue.steps);
    ["this", "self"].iter().find_map(|name| {
        let starts = variables(debug, pc, name);
        starts.into_iter().find_map(|start| {
            let end = steps().try_fold(start, |at, s| step(debug, at, s));
            pointee(debug, end?)
        })
    })
}

/// The text of a type, or of what it points to. `None` for what has no text.
pub fn pointee(debug: &Debug, at: Die) -> Option<String> {
    let (here, tag, attrs) = strip(debug, at)?;
    let inner = debug.target(here.unit, &attrs.type_);
    let text = match (tag, inner) {
        (gimli::DW_TAG_pointer_type, Some(target)) => describe(debug, Some(target)).text,
        // `void *` says nothing about the block.
        (gimli::DW_TAG_pointer_type, None) => return None,
        (gimli::DW_TAG_reference_type, Some(target)) => return pointee(debug, target),
        _ => describe(debug, Some(at)).text,
    };
    (!text.is_empty()).then_some(text)
}

/// Whether `name` is a local variable or parameter of the function at `pc`.
pub fn is_local(debug: &Debug, pc: u64, name: &str) -> bool {
    let (mut locals, mut globals) = (Vec::new(), Vec::new());
    for unit in debug.units_at(pc) {
        let _ = collect(debug, unit, pc, name, &mut locals, &mut globals);
    }
    !locals.is_empty()
}

/// Types of the variables called `name` that `pc` can see, nearest first.
fn variables(debug: &Debug, pc: u64, name: &str) -> Vec<Die> {
    let mut locals = Vec::new();
    let mut globals = Vec::new();
    for unit in debug.units_at(pc) {
        // An error ends the unit; what was found before it still counts.
        let _ = collect(debug, unit, pc, name, &mut locals, &mut globals);
    }
    // Deeper blocks come later in the file and hide outer ones.
    locals.reverse();
    locals.extend(globals);
    locals
}

fn collect(
    debug: &Debug,
    unit: usize,
    pc: u64,
    name: &str,
    locals: &mut Vec<Die>,
    globals: &mut Vec<Die>,
) -> gimli::Result<()> {
    let Some(parsed) = debug.unit(unit) else {
        return Ok(());
    };
    let mut raw = parsed.entries_raw(None)?;
    let mut attributes = Vec::new();
    // Depth of the function being read, and whether `pc` is in it.
    let mut function: Option<(isize, bool)> = None;
    while !raw.is_empty() {
        let depth = raw.next_depth();
        let Some(abbreviation) = raw.read_abbreviation()? else {
            continue;
        };
        if function.is_some_and(|f| depth <= f.0) {
            function = None;
        }
        let list = match (function, abbreviation.tag()) {
            (None, gimli::DW_TAG_subprogram) => None,
            (None, gimli::DW_TAG_variable) => Some(&mut *globals),
            (Some((_, true)), gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter) => {
                Some(&mut *locals)
            }
            _ => {
                raw.skip_attributes(abbreviation.attributes())?;
                continue;
            }
        };
        raw.read_attributes(abbreviation.attributes(), &mut attributes)?;
        let attrs = Attrs::of(&attributes);
        match list {
            Some(list) => list.extend(typed(debug, unit, &attrs, name)),
            None => {
                let ranges = debug.ranges_of(unit, &attrs);
                let inside = ranges.iter().any(|r| r.0 <= pc && pc < r.1);
                function = Some((depth, inside));
            }
        }
    }
    Ok(())
}

/// The type of a variable entry, if it has that name, itself or by its origin.
fn typed(debug: &Debug, unit: usize, attrs: &Attrs, name: &str) -> Option<Die> {
    let (mut unit, mut attrs) = (unit, attrs.clone());
    let mut type_at = debug.target(unit, &attrs.type_);
    for _ in 0..4 {
        if let Some(own) = debug.text(unit, &attrs.name) {
            // Fortran is written in either case.
            let same = own == name || own.eq_ignore_ascii_case(name) && is_fortran(debug, unit);
            return type_at.filter(|_| same);
        }
        let origin = debug.target(unit, &attrs.origin)?;
        (unit, attrs) = (origin.unit, debug.entry(origin)?.1);
        type_at = type_at.or_else(|| debug.target(unit, &attrs.type_));
    }
    None
}

fn is_fortran(debug: &Debug, unit: usize) -> bool {
    super::types::family(debug, unit) == super::types::Family::Fortran
}

fn step(debug: &Debug, at: Die, step: &Step) -> Option<Die> {
    let (here, tag, attrs) = strip(debug, at)?;
    let inner = debug.target(here.unit, &attrs.type_);
    match step {
        Step::Index => {
            matches!(tag, gimli::DW_TAG_pointer_type | gimli::DW_TAG_array_type).then_some(inner)?
        }
        Step::Member(name) => {
            let mut at = here;
            // `a->b` and `a.b` alike; arrays for Fortran's `a(i)%b`.
            if tag != gimli::DW_TAG_structure_type && tag != gimli::DW_TAG_class_type {
                at = inner?;
            }
            member(debug, strip(debug, at)?.0, name, MAX_BASES)
        }
    }
}

fn member(debug: &Debug, of: Die, name: &str, depth: u32) -> Option<Die> {
    let mut found = None;
    let mut nested = Vec::new();
    children(debug, of, |die, tag, attrs| {
        let own = debug.text(die.unit, &attrs.name);
        let type_at = debug.target(die.unit, &attrs.type_);
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
        .find_map(|base| member(debug, strip(debug, base)?.0, name, depth - 1))
}
