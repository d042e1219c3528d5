//! Types as text: `double [512][512]`, `struct cell [64]`, `[f64; 16]`,
//! `real(8), allocatable (:,:)`.
use super::array_bounds::{self, ArrayBounds};
use super::attrs::DieAttrs;
use super::demangle::{truncate_utf8, without_defaults};
use super::dwarf::{DebugInfo, DieRef};

const MAX_DEPTH: u32 = 24;
const MAX_TEXT: usize = 256;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypeText {
    pub text: String,
    /// Bytes; 0 if the type does not say.
    pub size: u64,
}

#[derive(Default)]
struct TypeParts {
    base: String,
    /// ` [4][4]` or `(4,4)`, kept apart so that an array of arrays reads in order.
    dims: String,
    size: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub enum LanguageFamily {
    C,
    Cpp,
    Fortran,
    Rust,
}

pub fn language_family(debug: &DebugInfo, unit: usize) -> LanguageFamily {
    use gimli::constants as k;
    match debug.language(unit) {
        Some(
            k::DW_LANG_Fortran77
            | k::DW_LANG_Fortran90
            | k::DW_LANG_Fortran95
            | k::DW_LANG_Fortran03
            | k::DW_LANG_Fortran08
            | k::DW_LANG_Fortran18,
        ) => LanguageFamily::Fortran,
        Some(k::DW_LANG_Rust) => LanguageFamily::Rust,
        Some(k::DW_LANG_C | k::DW_LANG_C89 | k::DW_LANG_C99 | k::DW_LANG_C11 | k::DW_LANG_C17) => {
            LanguageFamily::C
        }
        _ => LanguageFamily::Cpp,
    }
}

pub fn type_text(debug: &DebugInfo, at: Option<DieRef>) -> TypeText {
    let parts = at.map_or_else(TypeParts::default, |at| type_parts(debug, at, MAX_DEPTH));
    let mut text = parts.base;
    if !parts.dims.is_empty() {
        text.push(' ');
        text.push_str(&parts.dims);
    }
    TypeText {
        text: truncate_utf8(&text, MAX_TEXT).to_owned(),
        size: parts.size,
    }
}

/// What is behind typedefs and qualifiers.
pub fn strip_typedefs(debug: &DebugInfo, at: DieRef) -> Option<(DieRef, gimli::DwTag, DieAttrs)> {
    let mut at = at;
    for _ in 0..MAX_DEPTH {
        let (tag, attrs) = debug.entry(at)?;
        match tag {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => at = debug.referenced_die(at.unit, &attrs.type_)?,
            _ => return Some((at, tag, attrs)),
        }
    }
    None
}

fn type_parts(debug: &DebugInfo, at: DieRef, depth: u32) -> TypeParts {
    let Some((tag, attrs)) = depth.checked_sub(1).and_then(|_| debug.entry(at)) else {
        return TypeParts::default();
    };
    let inner = || match debug.referenced_die(at.unit, &attrs.type_) {
        Some(target) => type_parts(debug, target, depth - 1),
        None => TypeParts {
            base: "void".into(),
            ..TypeParts::default()
        },
    };
    let name = debug.attribute_text(at.unit, &attrs.name);
    let language = language_family(debug, at.unit);
    match tag {
        gimli::DW_TAG_const_type => qualified("const ", inner()),
        gimli::DW_TAG_volatile_type => qualified("volatile ", inner()),
        gimli::DW_TAG_atomic_type => qualified("_Atomic ", inner()),
        gimli::DW_TAG_restrict_type => inner(),
        gimli::DW_TAG_typedef => typedef(debug, at, name, inner()),
        gimli::DW_TAG_pointer_type => pointer(name, language, &attrs, inner()),
        gimli::DW_TAG_reference_type => suffixed(inner(), "&"),
        gimli::DW_TAG_rvalue_reference_type => suffixed(inner(), "&&"),
        gimli::DW_TAG_array_type => array(debug, at, language, &attrs, inner()),
        gimli::DW_TAG_string_type => TypeParts {
            base: match attrs.size {
                Some(n) => format!("character({n})"),
                None => "character(:)".into(),
            },
            size: attrs.size.unwrap_or(0),
            ..TypeParts::default()
        },
        gimli::DW_TAG_subroutine_type => TypeParts {
            base: format!("{} ()", inner().base),
            ..TypeParts::default()
        },
        _ => named_type(tag, language, name, attrs.size),
    }
}

fn named_type(
    tag: gimli::DwTag,
    language: LanguageFamily,
    name: Option<String>,
    size: Option<u64>,
) -> TypeParts {
    let keyword = match tag {
        gimli::DW_TAG_structure_type => "struct",
        gimli::DW_TAG_union_type => "union",
        gimli::DW_TAG_enumeration_type => "enum",
        gimli::DW_TAG_class_type => "class",
        _ => "",
    };
    let base = match (name, language) {
        (Some(name), LanguageFamily::C) if !keyword.is_empty() => format!("{keyword} {name}"),
        (Some(name), LanguageFamily::Fortran) if keyword == "struct" => format!("type({name})"),
        // gfortran says real(kind=8).
        (Some(name), LanguageFamily::Fortran) => name.replace("(kind=", "("),
        (Some(name), LanguageFamily::Rust) => without_defaults(&name),
        (Some(name), _) => common_spelling(name),
        (None, _) => keyword.to_owned(),
    };
    TypeParts {
        base,
        size: size.unwrap_or(0),
        ..TypeParts::default()
    }
}

/// gcc's names of C's integers in the order people write them.
fn common_spelling(name: String) -> String {
    match name.as_str() {
        "long int" => "long",
        "short int" => "short",
        "long long int" => "long long",
        "long unsigned int" => "unsigned long",
        "short unsigned int" => "unsigned short",
        "long long unsigned int" => "unsigned long long",
        _ => return without_defaults(&name),
    }
    .to_owned()
}

fn qualified(word: &str, mut inner: TypeParts) -> TypeParts {
    // A constant pointer is still named by what it points to.
    if !inner.base.ends_with('*') && !inner.base.starts_with(word) {
        inner.base.insert_str(0, word);
    }
    inner
}

/// A typedef keeps its name, except where it hides dimensions.
fn typedef(debug: &DebugInfo, at: DieRef, name: Option<String>, inner: TypeParts) -> TypeParts {
    let tag = strip_typedefs(debug, at).map(|found| found.1);
    match name {
        Some(name) if tag != Some(gimli::DW_TAG_array_type) => TypeParts {
            base: name,
            dims: String::new(),
            size: inner.size,
        },
        _ => inner,
    }
}

fn pointer(
    name: Option<String>,
    language: LanguageFamily,
    attrs: &DieAttrs,
    inner: TypeParts,
) -> TypeParts {
    let size = attrs.size.unwrap_or(8);
    let parts = match (name, language) {
        (Some(name), _) => TypeParts {
            base: name,
            ..TypeParts::default()
        },
        (None, LanguageFamily::Fortran) => TypeParts {
            base: format!("{}, pointer", inner.base),
            dims: inner.dims,
            size,
        },
        (None, _) => suffixed(inner, "*"),
    };
    TypeParts { size, ..parts }
}

fn suffixed(inner: TypeParts, mark: &str) -> TypeParts {
    let base = if let Some(function) = inner.base.strip_suffix(" ()") {
        format!("{function} ({mark})()")
    } else if !inner.dims.is_empty() {
        format!("{} ({mark}){}", inner.base, inner.dims)
    } else if inner.base.ends_with(['*', '&']) {
        format!("{}{mark}", inner.base)
    } else {
        format!("{} {mark}", inner.base)
    };
    TypeParts {
        base,
        dims: String::new(),
        size: 8,
    }
}

fn array(
    debug: &DebugInfo,
    at: DieRef,
    language: LanguageFamily,
    attrs: &DieAttrs,
    inner: TypeParts,
) -> TypeParts {
    let bounds = array_bounds::read_bounds(debug, at, language == LanguageFamily::Fortran);
    let counts = bounds.iter().map(|b| b.count());
    let elements = counts.clone().try_fold(1u64, |all, n| all.checked_mul(n?));
    let size = elements.and_then(|n| n.checked_mul(inner.size));
    let size = attrs.size.or(size).unwrap_or(0);
    let dims: Vec<String> = match language {
        LanguageFamily::Fortran => bounds.iter().map(ArrayBounds::to_fortran).collect(),
        _ => counts
            .map(|n| n.map_or_else(String::new, |n| n.to_string()))
            .collect(),
    };
    match language {
        LanguageFamily::Rust => TypeParts {
            base: dims
                .iter()
                .rev()
                .fold(inner.base, |t, n| format!("[{t}; {n}]")),
            dims: String::new(),
            size,
        },
        LanguageFamily::Fortran => TypeParts {
            base: match (attrs.allocated, attrs.associated) {
                (true, _) => format!("{}, allocatable", inner.base),
                (_, true) => format!("{}, pointer", inner.base),
                _ => inner.base,
            },
            dims: format!("({})", dims.join(",")),
            size: if attrs.allocated || attrs.associated {
                0
            } else {
                size
            },
        },
        _ => TypeParts {
            base: inner.base,
            dims: format!("[{}]{}", dims.join("]["), inner.dims),
            size,
        },
    }
}
