//! `allocate(a(n), b%c(n,m), stat=e)`, or an array that an assignment allocates.
use super::lvalue::{matching_close, parse_lvalue, split_top, AllocationReceiver, Lvalue};

/// Continuation lines of one statement (Fortran 2003, 3.3.1.3).
const CONTINUATIONS: usize = 255;

pub fn receiver(lines: &[String], at: usize) -> AllocationReceiver {
    let text = statement(lines, at);
    let lists = allocate_lists(&text);
    let items = lists.into_iter().flat_map(|list| split_top(list, b','));
    let found: Vec<Lvalue> = items.filter_map(parse_list_item).collect();
    if !found.is_empty() {
        return AllocationReceiver::Variables(found);
    }
    // `a = b + c` allocates an allocatable a.
    match text.split_once('=') {
        Some((left, right))
            if !right.starts_with(['=', '>']) && !left.ends_with(['/', '<', '>']) =>
        {
            let found = parse_lvalue(&left.replace(' ', ""));
            found.map_or(AllocationReceiver::Unknown, |one| {
                AllocationReceiver::Variables(vec![one])
            })
        }
        _ => AllocationReceiver::Unknown,
    }
}

/// The statement around a line, its continuation lines joined.
fn statement(lines: &[String], at: usize) -> String {
    // Comments may stand between a line and the next that continues it.
    let continued = |i: usize| {
        let mut above = lines[..=i].iter().rev().map(|line| strip_comment(line));
        let code = above.find(|line| !line.trim().is_empty());
        code.is_some_and(|line| line.trim_end().ends_with('&')) || is_fixed(lines.get(i + 1))
    };
    let mut first = at;
    while first > 0 && at - first < CONTINUATIONS && continued(first - 1) {
        first -= 1;
    }
    let mut last = at;
    while last + 1 < lines.len() && last - at < CONTINUATIONS && continued(last) {
        last += 1;
    }
    let mut text = String::new();
    for line in &lines[first..=last] {
        let line = if is_fixed(Some(line)) {
            &line[6..]
        } else {
            line
        };
        let part = strip_comment(line);
        let part = part.trim();
        text.push_str(part.trim_start_matches('&').trim_end_matches('&'));
        text.push(' ');
    }
    text
}

/// A continuation line of fixed-form source: blank up to column 6, not blank there.
fn is_fixed(line: Option<&String>) -> bool {
    line.is_some_and(|l| {
        l.len() > 6
            && l.as_bytes()[..5] == *b"     "
            && !b" 0".contains(&l.as_bytes()[5])
            && l.is_char_boundary(6)
    })
}

/// A line without its comment, the contents of strings blanked.
fn strip_comment(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '!') => break,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {
                out.push(' ');
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// The lists of all `allocate` statements in the text, which `;` may separate.
fn allocate_lists(text: &str) -> Vec<&str> {
    let lower = text.to_ascii_lowercase();
    let found = lower.match_indices("allocate").filter_map(|(at, word)| {
        // Not "deallocate".
        let own = !lower[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let behind = &lower[at + word.len()..];
        let open = at + word.len() + (behind.len() - behind.trim_start().len());
        let list = own && lower.as_bytes().get(open) == Some(&b'(');
        let close = matching_close(text.as_bytes(), open).unwrap_or(text.len());
        list.then(|| text.get(open + 1..close))?
    });
    found.collect()
}

/// One object of the list; its shape and options such as `stat=` dropped.
fn parse_list_item(text: &str) -> Option<Lvalue> {
    let text = text.rsplit("::").next()?.trim();
    if split_top(text, b'=').len() > 1 {
        return None;
    }
    // The last parentheses are the shape: `a%b(i)%c(n)` is `a%b(i)%c`.
    let shape = match text.strip_suffix(')') {
        Some(_) => {
            let opens = text.match_indices('(').map(|m| m.0);
            let last = |at: &usize| matching_close(text.as_bytes(), *at) == Some(text.len() - 1);
            opens.into_iter().find(last)?
        }
        None => text.len(),
    };
    parse_lvalue(&text[..shape].replace(' ', ""))
}
