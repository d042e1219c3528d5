//! Linker names to the names in the source, in bounded space: a mangled name of a
//! hundred bytes can expand to gigabytes, so the writer stops it.
use super::demangle_haskell::demangle_haskell;
use std::fmt::{self, Write};

const MAX_IN: usize = 4096;
const MAX_OUT: usize = 2048;

/// Readable, qualified, without parameters and hashes; `raw` itself if it is not mangled.
pub fn demangle(raw: &str) -> String {
    // nm-style "environ@GLIBC_2.2.5" names one symbol in several versions.
    let raw = raw.split('@').next().unwrap_or(raw);
    if raw.len() > MAX_IN {
        return truncate_utf8(raw, MAX_OUT).to_owned();
    }
    demangle_rust(raw)
        .or_else(|| demangle_cpp(raw))
        .or_else(|| leading_cpp_name(raw))
        .or_else(|| demangle_fortran(raw))
        .or_else(|| demangle_haskell(raw))
        .unwrap_or_else(|| truncate_utf8(raw, MAX_OUT).to_owned())
}

/// The last component of a qualified name, without template arguments:
/// `ns::list<a::b>::push<int>` gives `push`.
pub fn unqualified(name: &str) -> &str {
    if let Some(at) = name.rfind("operator") {
        return &name[at..];
    }
    let bytes = name.as_bytes();
    let (mut from, mut to, mut depth) = (0, bytes.len(), 0i32);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => {
                to = if depth == 0 && at > from { at } else { to };
                depth += 1;
            }
            b'>' => depth -= 1,
            b':' if depth == 0 && bytes.get(at + 1) == Some(&b':') => {
                (from, to) = (at + 2, bytes.len());
            }
            _ => {}
        }
    }
    name.get(from..to).unwrap_or(name)
}

/// Template arguments, and Rust's `T as Trait`, that are longer are left out or cut short.
const LONGEST_LIST: usize = 40;

/// A function's name with long lists of template arguments left out:
/// `std::mersenne_twister_engine<unsigned long, ...>::operator()` has 14 of them. The type and trait of a
/// method of Rust's are called by their last names where they are long: `<List as Push>::push`.
pub fn short_arguments(name: &str) -> String {
    let (mut out, name) = short_type(name).unwrap_or((String::new(), name));
    let class = name.find("operator").unwrap_or(name.len());
    let (mut depth, mut from) = (0u32, 0);
    for (at, byte) in name.bytes().enumerate().take(class) {
        match byte {
            b'<' if depth > 0 => depth += 1,
            // Not Rust's `<T as Trait>`.
            b'<' if out.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') => {
                (depth, from) = (1, at)
            }
            b'>' if depth > 0 => {
                depth -= 1;
                let list = &name[from..=at];
                match list.len() {
                    _ if depth > 0 => {}
                    0..=LONGEST_LIST => out.push_str(list),
                    _ => out.push_str("<...>"),
                }
            }
            _ if depth == 0 && name.is_char_boundary(at) => out.extend(name[at..].chars().next()),
            _ => {}
        }
    }
    // A name that was cut off in a list.
    let rest = if depth > 0 { from } else { class };
    out + &name[rest..]
}

/// The type and trait that a method's name begins with in Rust, if they are long paths, and the rest of it.
fn short_type(name: &str) -> Option<(String, &str)> {
    let (type_name, trait_name, rest) = method_of(name)?;
    if name.len() - rest.len() <= LONGEST_LIST || !type_name.contains("::") {
        return None;
    }
    let short = match trait_name {
        Some(of) => format!("<{} as {}>", last_name(type_name), unqualified(of)),
        None => format!("<{}>", last_name(type_name)),
    };
    Some((short, rest))
}

/// The last name of a path, of a closure with the function that it is in: `sort::{closure#0}`.
fn last_name(path: &str) -> String {
    let parent = |path| str::strip_suffix(path, unqualified(path))?.strip_suffix("::");
    let last = unqualified(path);
    let Some(function) = parent(path).filter(|_| last.starts_with('{')) else {
        return last.to_owned();
    };
    // Without its arguments: `sort::<f64>`.
    let function = match unqualified(function).starts_with('<') {
        true => parent(function).unwrap_or(function),
        false => function,
    };
    format!("{}::{last}", unqualified(function))
}

/// Of `<Type as Trait>::method` and `<Type>::method` the type, the trait, and what follows.
fn method_of(name: &str) -> Option<(&str, Option<&str>, &str)> {
    let inside = name.strip_prefix('<')?;
    let (mut depth, mut between) = (1u32, None);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // An arrow of a function's type ends no list.
            b'>' if at > 0 && inside.as_bytes()[at - 1] == b'-' => {}
            b'>' => depth -= 1,
            b' ' if depth == 1 && between.is_none() && inside[at..].starts_with(" as ") => {
                between = Some(at);
            }
            _ => {}
        }
        if depth == 0 {
            let type_name = &inside[..between.unwrap_or(at)];
            let of = between.map(|b| &inside[b + " as ".len()..at]);
            return Some((type_name, of, &inside[at + 1..]));
        }
    }
    None
}

/// Whether a function is one of Rust's library, by its name alone.
pub fn is_rust_library(function: &str) -> bool {
    const CRATES: [&str; 4] = ["alloc::", "core::", "hashbrown::", "std::"];
    let of_library = |path: &str| CRATES.iter().any(|c| path.starts_with(c));
    match method_of(function) {
        Some((type_name, of, _)) => of_library(type_name) && of.is_none_or(of_library),
        None => of_library(function),
    }
}

/// A type's name without its default template arguments.
pub fn without_defaults(name: &str) -> String {
    const DEFAULTS: [&str; 7] = [
        ", std::allocator<",
        ", std::default_delete<",
        ", std::char_traits<",
        ", std::less<",
        ", std::hash<",
        ", std::equal_to<",
        ", alloc::alloc::Global",
    ];
    let mut out = name.to_owned();
    for default in DEFAULTS {
        while let Some(at) = out.find(default) {
            let mut depth = i32::from(default.ends_with('<'));
            let mut end = at + default.len();
            while depth > 0 && end < out.len() {
                match out.as_bytes()[end] {
                    b'<' => depth += 1,
                    b'>' => depth -= 1,
                    _ => {}
                }
                end += 1;
            }
            if !out.is_char_boundary(end) {
                return out;
            }
            out.replace_range(at..end, "");
        }
    }
    out.replace(" >", ">")
        .replace("basic_string<char>", "string")
}

/// At most `max` bytes, cut at a character.
pub fn truncate_utf8(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn demangle_rust(raw: &str) -> Option<String> {
    // The older scheme looks like C++ but for its hash.
    let hashed = raw.contains("17h") && raw.starts_with("_ZN");
    if !raw.starts_with("_R") && !hashed {
        return None;
    }
    let name = rustc_demangle::try_demangle(raw).ok()?;
    let mut out = BoundedText::default();
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

fn demangle_cpp(raw: &str) -> Option<String> {
    if !raw.starts_with("_Z") {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(raw.as_bytes()).ok()?;
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type();
    let mut out = BoundedText::default();
    symbol.structured_demangle(&mut out, &options).ok()?;
    // A static of a function: the outer function keeps its parameters' brackets.
    Some(out.0.replace("()::", "::"))
}

/// The name of a C++ function of which the rest cannot be read, up to its template arguments:
/// GCC writes packs in requirements in a way of its own.
fn leading_cpp_name(raw: &str) -> Option<String> {
    let rest = raw.strip_prefix("_Z")?;
    let rest = rest.strip_prefix('N').unwrap_or(rest);
    let mut rest = rest.trim_start_matches(['r', 'V', 'K', 'R', 'O', 'L']);
    let mut parts = Vec::new();
    if let Some(inside) = rest.strip_prefix("St") {
        (parts, rest) = (vec!["std"], inside);
    }
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(length) = rest[..digits].parse::<usize>() else {
            break;
        };
        let end = digits.checked_add(length)?;
        parts.push(rest.get(digits..end)?);
        rest = &rest[end..];
    }
    (parts.len() > usize::from(parts.first() == Some(&"std"))).then(|| parts.join("::"))
}

/// gfortran: `__module_MOD_name`.
fn demangle_fortran(raw: &str) -> Option<String> {
    let (module, name) = raw.strip_prefix("__")?.split_once("_MOD_")?;
    Some(format!("{module}::{name}"))
}

#[derive(Default)]
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_OUT {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
