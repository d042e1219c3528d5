//! C, C++ and Rust: `p = malloc(n)`, `T *p = new T[n]`, `vector<T> v(n)`, `v.resize(n)`,
//! `posix_memalign(&p, ...)`, `: data(new T[n])`, `let v = vec![0; n]`, `field: vec![...]`.
use super::source::{
    is_word, matching_close, parse_lvalue, split_top, trailing_lvalue, AllocationReceiver, Lvalue,
    LvalueStep,
};
use super::statement::{find_allocation, statement_at};

/// Methods that make their object allocate.
const GROWING: [&str; 19] = [
    "resize",
    "reserve",
    "assign",
    "insert",
    "emplace",
    "append",
    "reset",
    "push",
    "push_back",
    "push_front",
    "emplace_back",
    "emplace_front",
    "try_emplace",
    "insert_or_assign",
    "allocate",
    "extend",
    "push_str",
    "resize_with",
    "entry",
];

pub fn receiver(lines: &[String], at: usize, column: usize, rust: bool) -> AllocationReceiver {
    // `#pragma omp parallel`: the runtime's own block.
    if lines[at].trim_start().starts_with("#pragma") {
        return AllocationReceiver::Unknown;
    }
    let (text, cursor) = statement_at(lines, at, column);
    let text = text.as_str();
    let body = text.trim_start();
    if body.starts_with("return") && !body[6..].starts_with(|c: char| is_word(c as u8)) {
        return AllocationReceiver::Returned;
    }
    // Their result is a status, not the block.
    let found = address_argument_lvalue(text, &["posix_memalign", "Alloc_mem", "asprintf"])
        .or_else(|| growing_object(text, cursor))
        .or_else(|| assigned_lvalue(text, cursor, rust))
        .or_else(|| address_argument_lvalue(text, &["alloc", "Alloc"]))
        .or_else(|| initialised_member(text, cursor))
        .or_else(|| method_object(text, cursor))
        .or_else(|| {
            if rust {
                initialised_field(text)
            } else {
                declared_variable(text, cursor)
            }
        });
    found.map_or(AllocationReceiver::Unknown, |one| {
        AllocationReceiver::Variables(vec![one])
    })
}

/// The left side of the last assignment before what allocates.
fn assigned_lvalue(text: &str, cursor: usize, rust: bool) -> Option<Lvalue> {
    let bytes = text.as_bytes();
    let is_assignment = |at: usize| {
        let before = at.checked_sub(1).map_or(b' ', |i| bytes[i]);
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        bytes[at] == b'=' && !b"=!<>+-*/%&|^".contains(&before) && !b"=>".contains(&after)
    };
    let all: Vec<usize> = (0..bytes.len()).filter(|at| is_assignment(*at)).collect();
    let ahead = text
        .get(cursor..)
        .and_then(find_allocation)
        .map(|at| cursor + at);
    let until = ahead.or(find_allocation(text)).unwrap_or(cursor).max(1);
    let at = all.iter().rev().find(|at| **at < until).or(all.first())?;
    let mut left = text[..*at].trim_end();
    if rust {
        // `let mut v: Vec<f64> = ...`
        if let Some(rest) = left.trim_start().strip_prefix("let ") {
            left = rest.split(':').next()?;
        }
    }
    trailing_lvalue(left)
}

/// `posix_memalign((void **)&p, 64, n)`.
fn address_argument_lvalue(text: &str, calls: &[&str]) -> Option<Lvalue> {
    let call = calls.iter().find_map(|w| text.find(w))?;
    let open = call + text[call..].find('(')?;
    let close = matching_close(text.as_bytes(), open).unwrap_or(text.len());
    split_top(text.get(open + 1..close)?, b',')
        .into_iter()
        .find_map(|argument| {
            let (cast, variable) = argument.rsplit_once('&')?;
            let cast = cast.trim();
            (cast.is_empty() || cast.ends_with(')')).then(|| parse_lvalue(variable))?
        })
}

/// `: rows(n), data(new double[n])`: the member at the cursor, else the first that
/// seems to allocate.
fn initialised_member(text: &str, cursor: usize) -> Option<Lvalue> {
    let mut best = None;
    let mut depth = 0i32;
    for (open, byte) in text.bytes().enumerate() {
        match byte {
            b')' | b'}' | b']' => depth -= 1,
            b'(' | b'{' | b'[' => depth += 1,
            _ => continue,
        }
        if depth != 1 || !matches!(byte, b'(' | b'{') {
            continue;
        }
        let before = text[..open].trim_end();
        let name_at = before.len() - before.bytes().rev().take_while(|c| is_word(*c)).count();
        let outside = before[..name_at].trim_end();
        let listed = outside.ends_with([':', ',']) && !outside.ends_with("::");
        let close = matching_close(text.as_bytes(), open).unwrap_or(text.len() - 1);
        if !listed || name_at == before.len() {
            continue;
        }
        if (name_at..=close + 1).contains(&cursor) {
            return parse_lvalue(&before[name_at..]);
        }
        if best.is_none() && find_allocation(&text[open..=close]).is_some() {
            best = parse_lvalue(&before[name_at..]);
        }
    }
    best
}

/// `at = list.insert(x)`: the list grows, and `at` only points into it.
fn growing_object(text: &str, cursor: usize) -> Option<Lvalue> {
    match find_allocation(text) {
        None => method_object(text, cursor),
        Some(_) => None,
    }
}

/// `grid.resize(n)`: the object.
fn method_object(text: &str, cursor: usize) -> Option<Lvalue> {
    let mut best = None;
    for (open, _) in text.match_indices('(') {
        let before = &text[..open];
        let name_at = open - before.bytes().rev().take_while(|c| is_word(*c)).count();
        let object = before[..name_at]
            .strip_suffix("->")
            .or_else(|| before[..name_at].strip_suffix('.'));
        let (Some(object), true) = (object, GROWING.contains(&&before[name_at..])) else {
            continue;
        };
        if best.is_none() || open <= cursor {
            best = trailing_lvalue(object).or(best);
        }
    }
    best
}

/// `std::vector<double> grid(n)`, `auto grid{...}`, `matrix a(n), b(n)`.
fn declared_variable(text: &str, cursor: usize) -> Option<Lvalue> {
    const KEYWORDS: [&str; 7] = ["return", "new", "delete", "throw", "else", "case", "goto"];
    let end = find_top_level(text, &['(', '{', ',']).unwrap_or(text.len());
    let head = text[..end].trim_end();
    let name_at = head.len() - head.bytes().rev().take_while(|c| is_word(*c)).count();
    let type_name = head[..name_at].trim_end();
    // A type, apart from the name, tells a declaration from a call.
    let word = type_name.ends_with(|c: char| is_word(c as u8));
    let apart = type_name.len() < name_at;
    let last = type_name.rsplit(|c: char| !is_word(c as u8)).next();
    let typed = word && apart || type_name.ends_with(['>', '*', '&']);
    if !typed || last.is_some_and(|w| KEYWORDS.contains(&w)) {
        return None;
    }
    let mut from = 0;
    for part in split_top(&text[name_at..], b',') {
        let to = from + part.len() + 1;
        if name_at + to > cursor || name_at + to > text.len() {
            let name = part.trim_start_matches([' ', '*', '&']);
            let end = name.bytes().take_while(|c| is_word(*c)).count();
            return parse_lvalue(&name[..end]);
        }
        from = to;
    }
    None
}

/// Rust: `Grid { cells: vec![...], .. }`.
fn initialised_field(text: &str) -> Option<Lvalue> {
    let until = find_allocation(text).unwrap_or(text.len());
    let colon = text[..until]
        .rfind(": ")
        .filter(|at| !text[..*at].ends_with(':'))?;
    let found = trailing_lvalue(&text[..colon])?;
    found
        .steps
        .iter()
        .all(|s| *s != LvalueStep::Index)
        .then_some(found)
}

/// The first of `marks` outside `<...>`.
fn find_top_level(text: &str, marks: &[char]) -> Option<usize> {
    let mut depth = 0i32;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth <= 0 && marks.contains(&c) => return Some(at),
            _ => {}
        }
    }
    None
}
