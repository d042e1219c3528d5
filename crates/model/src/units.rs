//! Durations, sizes, counts and shares as people write and read them.
//!
//! ```text
//! parse_*                  what a user writes: 10ms, 80M, 250k
//! count, bytes, three      tables: three digits, 1.23 M, 12.3 MiB
//! show_*                   lines of progress: two digits, 1.2 G, 310 MiB, 4 min 05 s
//! percent                  shares: 12.5 %
//! ```
// A span of time, no clock.
use core::time::Duration;

/// `500us`, `10ms`, `1.5s` -> nanoseconds.
pub fn parse_nanoseconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 5] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
    ];
    parse_scaled(text, &UNITS).ok_or_else(|| "write a duration as 500us, 10ms or 1s".to_string())
}

/// Nanoseconds -> seconds.
#[must_use]
pub fn nanos_to_seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// `80M`, `1.5G`, `4096` -> bytes; units are powers of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const KIB: f64 = 1024.0;
    const UNITS: [(&str, f64); 5] = [
        ("", 1.0),
        ("k", KIB),
        ("m", KIB * KIB),
        ("g", KIB * KIB * KIB),
        ("t", KIB * KIB * KIB * KIB),
    ];
    let lower = text.to_ascii_lowercase();
    let short = lower.strip_suffix("ib").or(lower.strip_suffix('b'));
    parse_scaled(short.unwrap_or(&lower), &UNITS)
        .ok_or_else(|| "write a size as 500k, 80M or 2G".to_string())
}

/// `8M`, `1.5G`, `250000` -> a count; units are powers of 1000.
pub fn parse_count(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)];
    parse_scaled(&text.to_ascii_lowercase(), &UNITS)
        .filter(|count| *count > 0)
        .ok_or_else(|| "write a count as 250k, 8M or 1G".to_string())
}

fn parse_scaled(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim())?;
    let value = (number.parse::<f64>().ok()? * scale).round();
    (value < u64::MAX as f64).then_some(value as u64)
}

/// `310 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    show(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// `1.2 G`.
pub fn show_count(count: u64) -> String {
    let text = show(count as f64, 1000.0, &["", "k", "M", "G", "T", "P"]);
    text.trim_end().to_string()
}

/// `12.3 s`, `4 min 05 s`, `2 h 07 min`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else if seconds < 3600 {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    } else {
        format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60)
    }
}

/// Two digits at least: 1.2, 9.9, 10, 310.
fn show(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = usize::from(unit > 0 && value < 9.95);
    format!("{value:.decimals$} {}", units[unit])
}

/// `1.23 M`: three digits and a unit.
pub fn count(n: u64) -> String {
    scaled(n as f64, 1000.0, &["", " k", " M", " G", " T", " P", " E"])
}

/// `1 page`, `3 pages`; the words may go on, with their verb: `3 pages were not counted`.
pub fn plural(n: impl Into<u64>, one: &str, many: &str) -> String {
    let n = n.into();
    format!("{n} {}", if n == 1 { one } else { many })
}

/// `1 page`, `1.02 k pages`: of what may be many.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// `the threads` -> `The threads.`
pub fn as_sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    let all = first.into_iter().flatten().chain(chars);
    all.chain(['.']).collect()
}

/// `1.23 MiB`.
pub fn bytes(n: u64) -> String {
    scaled(
        n as f64,
        1024.0,
        &[" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"],
    )
}

/// The blocks of an allocation site: `20 times, 211 KiB each, 4.12 MiB in all`, or
/// `96.0 KiB in 4,096 blocks of 24 B to 64 B`; `size` is what lived at the same time, at most.
pub fn heap_blocks(
    blocks: u64,
    size: u64,
    allocated: u64,
    (smallest, largest): (u64, u64),
) -> String {
    if blocks <= 1 {
        return bytes(size);
    }
    let number = with_commas(blocks);
    // Sizes are rounded up to what the tracer tells apart.
    let again = allocated > size + size / 100;
    if smallest == largest && largest > 0 && size < 2 * largest && again {
        let [each, all] = [largest, allocated].map(bytes);
        return format!("{number} times, {each} each, {all} in all");
    }
    let of = match (smallest, largest) {
        (0, _) => String::new(),
        (a, b) if a == b => format!(" of {}", bytes(a)),
        (a, b) => format!(" of {} to {}", bytes(a), bytes(b)),
    };
    let all = if again {
        format!(", {} in all", bytes(allocated))
    } else {
        String::new()
    };
    format!("{} in {number} blocks{of}{all}", bytes(size))
}

/// `4,096`.
fn with_commas(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    let texts = groups.iter().map(|g| String::from_utf8_lossy(g));
    texts.collect::<Vec<_>>().join(",")
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // What would be written as 1000 of a unit is 1 of the next.
    while value >= step * 0.9995 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    if unit == 0 {
        return format!("{value:.0}{}", units[0]);
    }
    format!("{}{}", three_digits(value), units[unit])
}

/// Three digits: 1.23, 12.3, 123; a unit from 100 000 on, a power of ten below 0.001.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99_999.5 => count(value as u64),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{value:.2}"),
        v if v >= 0.001 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// `12.3 %` of a share from 0 to 1.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let check =
            |text, expected: Option<u64>| assert_eq!(parse_nanoseconds(text).ok(), expected);
        check("10ms", Some(10_000_000));
        check("500us", Some(500_000));
        check("1s", Some(1_000_000_000));
        check("1.5 s", Some(1_500_000_000));
        check("2min", Some(120_000_000_000));
        check("10", None);
        check("ms", None);
        check("-1ms", None);
        check("1.2.3ms", None);
        check("99999999999999999999s", None);
        check("", None);
    }

    #[test]
    fn sizes_are_read() {
        let check = |text, expected: Option<u64>| assert_eq!(parse_bytes(text).ok(), expected);
        check("80M", Some(80 << 20));
        check("80MiB", Some(80 << 20));
        check("80mb", Some(80 << 20));
        check("1.5k", Some(1536));
        check("4096", Some(4096));
        check("4096B", Some(4096));
        check("2G", Some(2 << 30));
        check("big", None);
        check("", None);
        check("1X", None);
    }

    #[test]
    fn blocks_of_a_site() {
        for (blocks, size, allocated, range, expected) in [
            (1, 4096, 4096, (4096, 4096), "4.00 KiB"),
            (
                20,
                216_064,
                4_321_280,
                (216_064, 216_064),
                "20 times, 211 KiB each, 4.12 MiB in all",
            ),
            (
                4096,
                98304,
                98304,
                (24, 24),
                "96.0 KiB in 4,096 blocks of 24 B",
            ),
            (
                4096,
                98304,
                180_000,
                (24, 64),
                "96.0 KiB in 4,096 blocks of 24 B to 64 B, 176 KiB in all",
            ),
            (1_000_000, 98304, 0, (0, 0), "96.0 KiB in 1,000,000 blocks"),
        ] {
            assert_eq!(heap_blocks(blocks, size, allocated, range), expected);
        }
    }

    #[test]
    fn counts_are_read() {
        let check = |text, expected: Option<u64>| assert_eq!(parse_count(text).ok(), expected);
        check("8M", Some(8_000_000));
        check("250k", Some(250_000));
        check("17", Some(17));
        check("0", None);
        check("many", None);
    }

    #[test]
    fn figures_are_shown() {
        assert_eq!(show_bytes(0), "0 B");
        assert_eq!(show_bytes(1023), "1023 B");
        assert_eq!(show_bytes(1024), "1.0 KiB");
        assert_eq!(show_bytes(310 << 20), "310 MiB");
        assert_eq!(show_count(999), "999");
        assert_eq!(show_count(1_234_000_000), "1.2 G");
        assert_eq!(show_count(999_999), "1.0 M");
        assert_eq!(show_count(25_000), "25 k");
    }

    #[test]
    fn times_are_shown() {
        let check = |ms, expected| assert_eq!(show_duration(Duration::from_millis(ms)), expected);
        check(12_340, "12.3 s");
        check(245_000, "4 min 05 s");
        check(7_620_000, "2 h 07 min");
    }

    #[test]
    fn numbers_have_three_digits() {
        let check = |value: f64, want: &str| assert_eq!(three_digits(value), want);
        check(0.0, "0.00");
        check(1.234, "1.23");
        check(99.96, "100");
        check(1875.2, "1875");
        check(15_075_000_000.0, "15.1 G");
        check(0.0525, "0.0525");
        check(0.000_012, "1.2e-5");
        let check = |value: u64, want: &str| assert_eq!(count(value), want);
        check(999, "999");
        check(1000, "1.00 k");
        check(999_960, "1.00 M");
        check(u64::MAX, "18.4 E");
        assert_eq!(bytes(1 << 20), "1.00 MiB");
        assert_eq!(bytes(17), "17 B");
    }
}
