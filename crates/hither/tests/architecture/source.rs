//! Just enough of Rust's grammar to see which modules a file names.

/// The source with comments and literals blanked; lines stay where they are.
pub fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        let blank = |c: &char| if *c == '\n' { '\n' } else { ' ' };
        out.extend(chars[at..end].iter().map(blank));
        at = end;
    }
    out
}

/// Where the comment or literal that starts at `at` ends; `at` itself if none does.
fn literal_end(chars: &[char], at: usize) -> usize {
    let peek = |n: usize| chars.get(at + n).copied().unwrap_or('\0');
    let in_word = at > 0 && is_word(chars[at - 1]);
    match (chars[at], peek(1)) {
        ('/', '/') => find(chars, at, |rest| rest[0] == '\n'),
        ('/', '*') => block_comment_end(chars, at),
        ('"', _) => string_end(chars, at),
        ('r', '"' | '#') if !in_word || chars[at - 1] == 'b' => raw_string_end(chars, at),
        ('\'', '\\') => (find(chars, at + 3, |rest| rest[0] == '\'') + 1).min(chars.len()),
        ('\'', _) if peek(2) == '\'' => at + 3,
        _ => at,
    }
}

fn find(chars: &[char], from: usize, hit: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len())
        .find(|&i| hit(&chars[i..]))
        .unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < chars.len() {
        if chars[at..].starts_with(&['/', '*']) {
            depth += 1;
            at += 2;
        } else if chars[at..].starts_with(&['*', '/']) {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn raw_string_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return start; // a raw identifier, or just an r
    }
    let mut close = vec!['"'];
    close.extend(std::iter::repeat_n('#', hashes));
    let end = find(chars, open + 1, |rest| rest.starts_with(&close));
    (end + close.len()).min(chars.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Words, `::`, and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        all.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    all
}

pub type Path = Vec<String>;

/// Every path that `text` names, groups spelled out, and those through `crate`, `self`
/// and `super` made absolute: they start with "crate". `module` is where the file sits.
pub fn paths(text: &str, module: &[&str]) -> Vec<Path> {
    let code = code_only(text);
    let tokens = tokens(&code);
    let mut found = Vec::new();
    let mut inline: Vec<(usize, &str)> = Vec::new(); // `mod x {`: brace depth, name
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at] {
            "{" => {
                if at >= 2 && tokens[at - 2] == "mod" {
                    inline.push((depth, tokens[at - 1]));
                }
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                inline.retain(|(opened, _)| *opened < depth);
            }
            word if word.starts_with(is_word) => {
                let mut here = vec!["crate".to_string()];
                here.extend(module.iter().map(ToString::to_string));
                here.extend(inline.iter().map(|(_, name)| (*name).to_string()));
                let mut all = Vec::new();
                at = tree(&tokens, at, Vec::new(), &mut all);
                found.extend(all.iter().map(|path| absolute(path, &here)));
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads `a::b::{c, d::*}` from `at` into full paths; returns where it ends.
fn tree(tokens: &[&str], mut at: usize, mut prefix: Path, out: &mut Vec<Path>) -> usize {
    loop {
        match tokens.get(at).copied() {
            Some("{") => {
                at += 1;
                while tokens.get(at).is_some_and(|t| *t != "}") {
                    at = tree(tokens, at, prefix.clone(), out);
                    while tokens.get(at).is_some_and(|t| !matches!(*t, "," | "}")) {
                        at += 1; // `as other`
                    }
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                return at + 1;
            }
            Some(word) => {
                prefix.push(word.to_string());
                at += 1;
            }
            None => break,
        }
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    out.push(prefix);
    at
}

fn absolute(path: &[String], here: &[String]) -> Path {
    let mut base = match path[0].as_str() {
        "self" | "super" => here.to_vec(),
        _ => return path.to_vec(),
    };
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        match first.as_str() {
            "self" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        rest = tail;
    }
    base.extend(rest.iter().cloned());
    base
}
