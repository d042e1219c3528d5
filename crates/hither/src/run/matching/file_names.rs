//! File names that are the same but for what changes from run to run.

pub use hither_profile::file_name;

/// The name as it is kept once the file is deleted.
pub fn without_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// A path with every number in it replaced: process ids, job ids, times, counters.
/// `/dev/shm/seg.host.57ac0001.3` -> `/dev/shm/seg.host.#.#`.
pub fn skeleton(path: &str) -> String {
    split(path).0
}

/// How many numbers two paths of one skeleton have in common, place by place.
pub fn common_numbers(a: &str, b: &str) -> usize {
    let (a, b) = (split(a).1, split(b).1);
    a.iter().zip(&b).filter(|(a, b)| a == b).count()
}

/// How many characters two names start with alike.
pub fn in_common(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// The skeleton, and the numbers that were in it. A word of hexadecimal digits with a
/// decimal one among them is a number; in other words each row of decimal digits is.
fn split(path: &str) -> (String, Vec<String>) {
    let (mut text, mut numbers) = (String::new(), Vec::new());
    let mut rest = without_deleted(path);
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let word = &rest[..word.unwrap_or(rest.len())];
        let decimal = |c: char| c.is_ascii_digit();
        let hexadecimal = word.chars().all(|c| c.is_ascii_hexdigit());
        let taken = if word.is_empty() {
            first.len_utf8()
        } else if hexadecimal && word.contains(decimal) {
            word.len()
        } else if decimal(first) {
            word.find(|c| !decimal(c)).unwrap_or(word.len())
        } else {
            word.find(decimal).unwrap_or(word.len())
        };
        let (part, behind) = rest.split_at(taken);
        if decimal(first) || (hexadecimal && part.contains(decimal)) {
            text.push('#');
            numbers.push(part.to_owned());
        } else {
            text.push_str(part);
        }
        rest = behind;
    }
    (text, numbers)
}

/// Bytes for people: `64 MiB`, `132 KiB`.
pub fn format_size(length: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    for (unit, name) in units {
        if length >= unit {
            let tenths = (u128::from(length) * 10 + u128::from(unit) / 2) / u128::from(unit);
            return match tenths % 10 {
                0 => format!("{} {name}", tenths / 10),
                tenth => format!("{}.{tenth} {name}", tenths / 10),
            };
        }
    }
    format!("{length} bytes")
}
