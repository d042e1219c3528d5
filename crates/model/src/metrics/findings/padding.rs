//! What to write so that data of different threads no longer lies in the same line, in the
//! language that declares it.
use super::common::name_of;
use super::falsely_shared::{FalseSharingSite, FalselySharedLine};
use super::FindingContext;
use hither_profile::{Object, ObjectKind, ObjectMember, ObjectRange, SuggestedFix};

/// Of a structure's lines, those shared at the borders of parts are fewer than this.
const FEW: f64 = 0.5;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceLanguage {
    C,
    Cpp,
    Fortran,
}

fn language(file: &str) -> SourceLanguage {
    match file.rsplit_once('.').map_or("", |(_, end)| end) {
        "cpp" | "cc" | "cxx" | "c++" | "C" | "hpp" | "hh" | "hxx" | "cu" => SourceLanguage::Cpp,
        "f" | "for" | "f77" | "f90" | "f95" | "f03" | "f08" | "F" | "F90" | "F95" | "F03"
        | "F08" => SourceLanguage::Fortran,
        _ => SourceLanguage::C,
    }
}

/// How to give each thread's part lines of its own.
pub fn padding_fixes(
    case: &FindingContext,
    place: &FalseSharingSite,
    what: &str,
) -> Vec<SuggestedFix> {
    let line = u64::from(case.profile.meta.options.line).max(1);
    let object = |range: &&ObjectRange| &case.profile.objects[range.object.at()];
    let objects: Vec<&Object> = place.ranges.iter().map(object).collect();
    let (what, copy) = match objects.as_slice() {
        [one] if one.kind == ObjectKind::Stack => (
            format!("Give what other threads use of the {what} a line of its own: then what lies beside it stays where it is."),
            format!("{} TYPE variable;", align_specifier(one, line)),
        ),
        [one] if language(&one.file) == SourceLanguage::Fortran => fortran_fix(one, line),
        [one] => single_object_fix(case, place, one, line),
        several if !several.is_empty() && several.iter().all(|o| o.kind == ObjectKind::Static) => (
            "Begin each of them at a line of its own: then a write to one leaves the others where they are.".to_owned(),
            several.iter().map(|o| aligned_declaration(o, line)).collect::<Vec<_>>().join("\n"),
        ),
        _ => (
            format!("Allocate what different threads use in {what} as whole lines: then no two of them share one."),
            format!("p = aligned_alloc({line}, (size + {0}) / {line} * {line});", line - 1),
        ),
    };
    vec![SuggestedFix { what, copy }]
}

/// `_Alignas(64)`, or what C++ has for it.
fn align_specifier(object: &Object, line: u64) -> String {
    match language(&object.file) {
        SourceLanguage::Cpp => "alignas(std::hardware_destructive_interference_size)".to_owned(),
        _ => format!("_Alignas({line})"),
    }
}

/// The type without its dimensions, and these: `long`, `[64]`.
fn split_array_type(object: &Object) -> (&str, &str) {
    let text = object.type_name.trim();
    let (base, dimensions) = text.split_at(text.find('[').unwrap_or(text.len()));
    let base = base.trim();
    (if base.is_empty() { "TYPE" } else { base }, dimensions)
}

/// A variable that begins at a line.
fn aligned_declaration(object: &Object, line: u64) -> String {
    let name = &object.name;
    let (base, dimensions) = split_array_type(object);
    match language(&object.file) {
        SourceLanguage::Fortran => {
            format!("integer(1) :: {name}_pad({line})\ncommon /{name}_line/ {name}, {name}_pad")
        }
        _ => format!(
            "{} {base} {name}{dimensions};",
            align_specifier(object, line)
        ),
    }
}

fn fortran_fix(object: &Object, line: u64) -> (String, String) {
    let name = &object.name;
    (
        format!("Give {name} a first dimension of {line} bytes, so that what different threads use lies in different lines."),
        format!("! {line} bytes: 8 of real(8), 16 of real(4) or integer(4); use {name}(1, i)\n{name}({}, n)", line / 8),
    )
}

fn single_object_fix(
    case: &FindingContext,
    place: &FalseSharingSite,
    object: &Object,
    line: u64,
) -> (String, String) {
    let worst = &place.lines[0];
    let name = name_of(case, place.ranges[0].object);
    let of_user = |mask: u64| members_of(case, place, worst, mask);
    let users = worst.users.iter();
    let mut members: Vec<String> = users
        .flat_map(|u| of_user(u.read_mask | u.write_mask))
        .collect();
    members.sort();
    members.dedup();
    if members.len() > 1 && share_one_element(case, place, worst) {
        return (
            format!("Begin the members of {name} that different threads use at lines of their own: then a write to one leaves the others where they are."),
            member_lines(case, place, object, &members, line),
        );
    }
    if only_at_borders(place, line) {
        return (
            format!("Only the borders of the threads' parts of {name} share lines: begin {name} at a line and make each part a multiple of {line} bytes."),
            format!("part = (part * sizeof *{name} + {0}) / {line} * {line} / sizeof *{name};", line - 1),
        );
    }
    (
        format!("Give what each thread uses of {name} a line of its own: then no write takes it from another thread."),
        padded_element(object, &name, !members.is_empty(), line),
    )
}

/// Are the lines those at the borders of parts: few, and each thread on one side of one?
fn only_at_borders(place: &FalseSharingSite, line: u64) -> bool {
    let shared = place.lines.len() as f64 * line as f64;
    let whole = |mask: u64| mask.count_zeros() == mask.leading_zeros() + mask.trailing_zeros();
    let two = |l: &FalselySharedLine| {
        l.users.len() == 2 && l.users.iter().all(|u| whole(u.read_mask | u.write_mask))
    };
    place.lines.len() > 1
        && shared < FEW * place.ranges[0].length as f64
        && place.lines.iter().all(two)
}

/// Each element as a line.
fn padded_element(object: &Object, name: &str, structure: bool, line: u64) -> String {
    let (base, dimensions) = split_array_type(object);
    let cpp = language(&object.file) == SourceLanguage::Cpp;
    let head = if cpp { "#include <new>\n" } else { "" };
    let align = align_specifier(object, line);
    let fixed = matches!(object.kind, ObjectKind::Static) && !dimensions.is_empty();
    if structure && cpp {
        return format!(
            "{head}struct {align} {} {{ /* members */ }};",
            bare_type_name(base)
        );
    }
    if structure {
        return format!("{base} {{ /* members */ }} __attribute__((aligned({line})));");
    }
    match (fixed, cpp) {
        (true, true) => format!("{head}struct Padded {{ {align} {base} value; }};\nPadded {name}{dimensions}; // use {name}[i].value"),
        (true, false) => format!("struct {{ {align} {base} value; }} {name}{dimensions}; /* use {name}[i].value */"),
        (false, true) => format!("{head}struct Padded {{ {align} {} value; }};\nstd::vector<Padded> part(threads); // use part[i].value", bare_type_name(base)),
        (false, false) => format!("struct padded {{ {align} {} value; }};\nstruct padded *part = aligned_alloc({line}, threads * sizeof *part); /* use part[i].value */", bare_type_name(base)),
    }
}

fn bare_type_name(base: &str) -> &str {
    let base = base.strip_prefix("struct ").unwrap_or(base);
    base.trim_end_matches(['*', ' '])
}

fn member_lines(
    case: &FindingContext,
    place: &FalseSharingSite,
    object: &Object,
    names: &[String],
    line: u64,
) -> String {
    let all = &case.profile.members;
    let of = place.ranges[0].object;
    let mine = all.iter().filter(|m| m.object == of);
    let mut mine: Vec<&ObjectMember> = mine.filter(|m| names.contains(&m.name)).collect();
    mine.sort_by_key(|m| m.offset);
    let declare = |m: &&ObjectMember| {
        let type_name = if m.type_name.is_empty() {
            "TYPE"
        } else {
            &m.type_name
        };
        let (base, dimensions) = type_name.split_at(type_name.find('[').unwrap_or(type_name.len()));
        format!(
            "{} {} {}{dimensions};",
            align_specifier(object, line),
            base.trim(),
            m.name
        )
    };
    mine.iter().map(declare).collect::<Vec<_>>().join("\n")
}

/// Bytes of a structure's element: of the array's type where it is one of structures.
fn element_size(case: &FindingContext, range: &ObjectRange) -> Option<u64> {
    let members = case.profile.members.iter();
    let mine = members.filter(|m| m.object == range.object);
    let end = mine.map(|m| m.offset.saturating_add(m.size)).max()?;
    let end = end.max(1);
    let size = case.profile.objects[range.object.at()].size;
    // The padding behind the last member is less than the strictest alignment.
    (end..end.saturating_add(64)).find(|s| size.is_multiple_of(*s))
}

/// Positions in the structure of the bytes of a mask.
fn element_offsets<'a>(
    case: &'a FindingContext,
    range: &'a ObjectRange,
    line: &'a FalselySharedLine,
    mask: u64,
) -> impl Iterator<Item = u64> + 'a {
    let part = (u64::from(case.profile.meta.options.line) / 64).max(1);
    (0..64)
        .filter(move |n| mask >> n & 1 == 1)
        .filter_map(move |n| {
            line.offset
                .saturating_add(n * part)
                .checked_sub(range.offset)
        })
}

/// The members in which bytes of a line's mask lie, where the structure has any.
pub fn members_of(
    case: &FindingContext,
    place: &FalseSharingSite,
    line: &FalselySharedLine,
    mask: u64,
) -> Vec<String> {
    let [range] = place.ranges.as_slice() else {
        return Vec::new();
    };
    let Some(stride) = element_size(case, range) else {
        return Vec::new();
    };
    let members = &case.profile.members;
    let mut found: Vec<&ObjectMember> = Vec::new();
    for at in element_offsets(case, range, line, mask) {
        let inside = |m: &&ObjectMember| {
            let in_member = (at % stride).checked_sub(m.offset);
            m.object == range.object && in_member.is_some_and(|b| b < m.size)
        };
        let member = members.iter().find(inside);
        found.extend(member.filter(|m| !found.contains(m)));
    }
    found.into_iter().map(|m| m.name.clone()).collect()
}

/// Do several threads use the same element of an array of structures?
fn share_one_element(
    case: &FindingContext,
    place: &FalseSharingSite,
    line: &FalselySharedLine,
) -> bool {
    let range = place.ranges[0];
    let Some(stride) = element_size(case, range) else {
        return false;
    };
    let elements = |mask| -> Vec<u64> {
        let mut all: Vec<u64> = element_offsets(case, range, line, mask)
            .map(|at| at / stride)
            .collect();
        all.dedup();
        all
    };
    let users = line.users.iter();
    let mut used: Vec<u64> = users
        .flat_map(|u| elements(u.read_mask | u.write_mask))
        .collect();
    let all = used.len();
    used.sort_unstable();
    used.dedup();
    used.len() < all
}
