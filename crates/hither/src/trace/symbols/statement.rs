//! The C, C++ or Rust statement around a line, without comments and strings.

/// How far a statement may begin before the line of its call, and end after it.
const BACK: usize = 3;
const AHEAD: usize = 3;

/// The statement at a line and column, on one line, and the cursor within it.
pub fn statement_at(lines: &[String], at: usize, column: usize) -> (String, usize) {
    let own = strip_comment(&lines[at]);
    let mut text = String::new();
    let first = (at.saturating_sub(BACK)..at)
        .rev()
        .take_while(|i| !ends_statement(&strip_comment(&lines[*i])))
        .last()
        .unwrap_or(at);
    for line in &lines[first..at] {
        text.push_str(&strip_comment(line));
        text.push(' ');
    }
    // Columns count from 1; 0 is unknown.
    let cursor = text.len() + column.saturating_sub(1).min(own.len());
    text.push_str(&own);
    for line in lines.iter().skip(at + 1).take(AHEAD) {
        if ends_statement(&text) {
            break;
        }
        text.push(' ');
        text.push_str(&strip_comment(line));
    }
    pick_statement(&text, cursor, column > 0)
}

/// Of several statements in `text` the one at the cursor; without one, the first that
/// seems to allocate.
fn pick_statement(text: &str, cursor: usize, known: bool) -> (String, usize) {
    let mut from = 0;
    let (mut depth, mut square) = (0i32, 0i32);
    let mut parts = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'[' => square += 1,
            b']' => square -= 1,
            // Also in `for (i = 0; ...) p = malloc(n)`, but not in Rust's `[0; n]`.
            b';' if square <= 0 => {
                parts.push((from, at));
                (from, depth, square) = (at + 1, 0, 0);
            }
            // `if (x) { p = malloc(n); }`, but not `T v{n}` or `S { a: vec![] }`.
            b'{' if depth <= 0 && text[from..at].trim_end().ends_with([')', ':']) => {
                parts.push((from, at));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push((from, text.len()));
    let chosen = match known {
        true => parts.iter().find(|p| cursor <= p.1),
        false => parts
            .iter()
            .find(|p| find_allocation(&text[p.0..p.1]).is_some()),
    };
    let (from, to) = chosen.or(parts.first()).copied().unwrap_or((0, text.len()));
    (
        text[from..to].to_owned(),
        cursor.saturating_sub(from).min(to - from),
    )
}

/// Where the text seems to allocate.
pub fn find_allocation(text: &str) -> Option<usize> {
    [
        "alloc",
        "new ",
        "new(",
        "vec!",
        "make_",
        "memalign",
        "strdup",
        "mmap",
        "with_capacity",
    ]
    .iter()
    .filter_map(|w| text.find(w))
    .min()
}

fn ends_statement(code: &str) -> bool {
    let code = code.trim();
    code.is_empty()
        || code.ends_with([';', '{', '}'])
        || code.starts_with('#')
        || code.ends_with("*/")
}

/// A line without comments, the contents of strings blanked; columns are kept.
fn strip_comment(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut quote: Option<char> = None;
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match quote {
            Some(_) if c == '\\' => {
                out.push(' ');
                if let Some((_, escaped)) = chars.next() {
                    out.extend(std::iter::repeat_n(' ', escaped.len_utf8()));
                }
            }
            Some(open) if c == open => {
                quote = None;
                out.push(c);
            }
            Some(_) => out.extend(std::iter::repeat_n(' ', c.len_utf8())),
            None if line[at..].starts_with("//") => break,
            None if line[at..].starts_with("/*") => match line[at + 2..].find("*/") {
                Some(end) => {
                    let until = at + 2 + end + 2;
                    out.extend(std::iter::repeat_n(' ', until - at));
                    while chars.clone().next().is_some_and(|next| next.0 < until) {
                        chars.next();
                    }
                }
                None => break,
            },
            // ' is also a digit separator and a lifetime: only 'x' is a character.
            None if c == '\'' && chars.clone().nth(1).is_some_and(|next| next.1 == '\'') => {
                let blank = chars.next().map_or(0, |next| next.1.len_utf8());
                out.push(c);
                out.extend(std::iter::repeat_n(' ', blank));
            }
            None => {
                quote = (c == '"').then_some(c);
                out.push(c);
            }
        }
    }
    out
}
