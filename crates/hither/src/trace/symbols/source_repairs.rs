//! Source as the parser understands it: what its grammar of C++ lacks is blanked, so that every character stays where
//! it is.

/// `new double *[n]` without the `*`: the grammar has no pointers in what `new` makes, takes `[n]` for the beginning of
/// a lambda expression, and with it the statements behind.
pub fn without_pointers_of_new(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (at, word) in text.match_indices("new") {
        let end = at + word.len();
        let is_part = |c: Option<&u8>| c.is_some_and(|c| super::lvalue::is_word(*c));
        if is_part(bytes.get(end)) || is_part(at.checked_sub(1).and_then(|b| bytes.get(b))) {
            continue;
        }
        if let Some(stars) = pointers_made(&bytes, end) {
            let part = &mut bytes[stars];
            part.iter_mut()
                .filter(|c| **c == b'*')
                .for_each(|c| *c = b' ');
        }
    }
    // Only ASCII characters are replaced, by another one.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Where the stars of a `new` are whose type begins at `at`, if there are any and the type ends with them.
fn pointers_made(bytes: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let mut at = space_end(bytes, at);
    // Where to make it, or how: `new (std::nothrow) T`.
    if bytes.get(at) == Some(&b'(') {
        at = space_end(bytes, closing(bytes, at)? + 1);
    }
    let start = type_end(bytes, at);
    if start == at || bytes.get(start) != Some(&b'*') {
        return None;
    }
    let rest = bytes[start..].iter();
    let stars = rest.take_while(|c| **c == b'*' || c.is_ascii_whitespace());
    let end = start + stars.count();
    let ends = bytes.get(end).is_some_and(|c| b"[({;,)".contains(c));
    ends.then_some(start..end)
}

/// Where the words, scopes and template arguments of a type's name end, and the space behind them.
fn type_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&c) = bytes.get(at) {
        match c {
            b'<' => match closing(bytes, at) {
                Some(end) => at = end + 1,
                None => return at,
            },
            c if super::lvalue::is_word(c) || c == b':' || c.is_ascii_whitespace() => at += 1,
            _ => break,
        }
    }
    at
}

fn space_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|c| c.is_ascii_whitespace()).count()
}

/// Where the bracket at `open` is closed, not far behind.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    const FAR: usize = 400;
    let mut depth = 0usize;
    for (at, c) in bytes.iter().enumerate().skip(open).take(FAR) {
        match c {
            b'(' | b'<' => depth += 1,
            b')' | b'>' => depth = depth.checked_sub(1)?,
            b';' | b'{' | b'}' => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
