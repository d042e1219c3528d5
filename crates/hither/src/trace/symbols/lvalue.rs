//! What takes a block that an allocation returns, as it is written in the source: a variable, or a
//! part of one.

#[derive(Clone, Debug, PartialEq)]
pub enum LvalueStep {
    Member(String),
    Index,
}

/// A variable, or a part of one, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lvalue {
    pub text: String,
    pub root: String,
    pub steps: Vec<LvalueStep>,
}

/// What the statement does with the block.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AllocationReceiver {
    /// One or, in Fortran's `allocate(a, b)`, several variables, in order.
    Variables(Vec<Lvalue>),
    /// `return malloc(n)`: the caller names it.
    Returned,
    #[default]
    Unknown,
}

/// The expression that ends `text`: `double *g->rows[i]` gives `g->rows[i]`.
pub fn trailing_lvalue(text: &str) -> Option<Lvalue> {
    let bytes = text.trim_end().as_bytes();
    let mut start = bytes.len();
    while start > 0 {
        let c = bytes[start - 1];
        start = match c {
            b']' | b')' => matching_open(bytes, start - 1)?,
            b'>' if start > 1 && bytes[start - 2] == b'-' => start - 2,
            b'.' | b'%' => start - 1,
            b':' if start > 1 && bytes[start - 2] == b':' => start - 2,
            _ if is_word(c) => start - 1,
            _ => break,
        };
    }
    let own = std::str::from_utf8(&bytes[start..]).ok()?;
    let prefix = text[..start].trim_end();
    let mut found = parse_lvalue(own)?;
    // `*p = malloc(n)` stores behind p; `T *p = malloc(n), *q = malloc(n)` declares p and q.
    let before = prefix.trim_end_matches('*').trim_end();
    let declares = before.ends_with(|c: char| is_word(c as u8) || c == '>' || c == ',');
    if prefix.ends_with('*') && !declares {
        found.text.insert(0, '*');
        found.steps.push(LvalueStep::Index);
    }
    Some(found)
}

/// Where `(*a)` at the beginning ends, if something of what `a` points to follows.
fn pointer_in_brackets(text: &str) -> Option<usize> {
    let name = text.strip_prefix("(*")?.split(')').next()?;
    let end = 2 + name.len() + 1;
    let is_name = name.bytes().all(|c| is_word(c) || c == b':');
    let goes_on = text.get(end..)?.starts_with(['-', '.', '[']);
    (is_name && goes_on).then_some(end)
}

/// Reads `a->b[i].c`, `(*a)->b`, `this->a`, `a%b(i)`, `ns::a`.
pub fn parse_lvalue(text: &str) -> Option<Lvalue> {
    let text = text.trim();
    let text = ["this->", "self."]
        .iter()
        .find_map(|p| text.strip_prefix(p))
        .unwrap_or(text);
    let bytes = text.as_bytes();
    let word_end = |from: usize| {
        let rest = &bytes[from..];
        from + rest.iter().take_while(|c| is_word(**c)).count()
    };
    let behind = pointer_in_brackets(text);
    let start = if behind.is_some() { 2 } else { 0 };
    let mut at = word_end(start);
    while text[at..].starts_with("::") {
        at = word_end(at + 2);
    }
    let root = text[start..at].rsplit("::").next()?.to_owned();
    if root.is_empty() || root.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut steps = Vec::new();
    if let Some(end) = behind {
        steps.push(LvalueStep::Index);
        at = end;
    }
    while at < bytes.len() {
        let member = match &text[at..] {
            t if t.starts_with("->") => Some(2),
            t if t.starts_with(['.', '%']) => Some(1),
            t if t.starts_with(['[', '(']) => None,
            _ => return None,
        };
        at = match member {
            Some(skip) => {
                let end = word_end(at + skip);
                steps.push(LvalueStep::Member(text[at + skip..end].to_owned()));
                end
            }
            None => {
                steps.push(LvalueStep::Index);
                matching_close(bytes, at)? + 1
            }
        };
    }
    Some(Lvalue {
        text: text.to_owned(),
        root,
        steps,
    })
}

pub fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$' || c >= 0x80
}

/// Index of the bracket that opens the one at `close`.
fn matching_open(bytes: &[u8], close: usize) -> Option<usize> {
    let before = bytes[..=close].iter().enumerate().rev();
    matching(before, CLOSING, OPENING)
}

/// Index of the bracket that closes the one at `open`.
pub fn matching_close(bytes: &[u8], open: usize) -> Option<usize> {
    matching(bytes.iter().enumerate().skip(open), OPENING, CLOSING)
}

const OPENING: &[u8] = b"([{";
const CLOSING: &[u8] = b")]}";

fn matching<'a>(
    bytes: impl Iterator<Item = (usize, &'a u8)>,
    begin: &[u8],
    end: &[u8],
) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in bytes {
        if begin.contains(byte) {
            depth += 1;
        } else if end.contains(byte) {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Splits at `separator` outside brackets.
pub fn split_top(text: &str, separator: u8) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0i32, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ if byte == separator && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
