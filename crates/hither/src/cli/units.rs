//! Durations, sizes and counts as people write and read them.
use hither_profile::RunEnd;
use nix::sys::signal::Signal;
use std::time::Duration;

/// `500us`, `10ms`, `1.5s` -> nanoseconds.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 5] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
    ];
    scaled(text, &UNITS).ok_or_else(|| "write a duration as 500us, 10ms or 1s".to_string())
}

/// `80M`, `1.5G`, `4096` -> bytes; units are powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
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
    scaled(short.unwrap_or(&lower), &UNITS)
        .ok_or_else(|| "write a size as 500k, 80M or 2G".to_string())
}

/// `8M`, `1.5G`, `250000` -> a count; units are powers of 1000.
pub fn count(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)];
    scaled(&text.to_ascii_lowercase(), &UNITS)
        .filter(|count| *count > 0)
        .ok_or_else(|| "write a count as 250k, 8M or 1G".to_string())
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<u64> {
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

/// How a program ended, to be put behind something; nothing where all is well.
pub fn show_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Exited { status: 0 } => String::new(),
        RunEnd::Exited { status } => format!(", exit status {status}"),
        RunEnd::Signaled { signal } => {
            let name = Signal::try_from(*signal).map_or("", Signal::as_str);
            format!(", killed by signal {signal} {name}")
                .trim_end()
                .to_string()
        }
        RunEnd::Interrupted => ", interrupted".to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let check = |text, expected: Option<u64>| assert_eq!(nanoseconds(text).ok(), expected);
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
    fn ends_are_shown() {
        let check = |end: RunEnd, expected: &str, status| {
            assert_eq!(show_end(&end), expected);
            assert_eq!(crate::program::child::exit_status(&end), status);
        };
        check(RunEnd::Exited { status: 0 }, "", 0);
        check(RunEnd::Exited { status: 3 }, ", exit status 3", 3);
        check(
            RunEnd::Signaled { signal: 11 },
            ", killed by signal 11 SIGSEGV",
            139,
        );
    }

    #[test]
    fn sizes_are_read() {
        let check = |text, expected: Option<u64>| assert_eq!(bytes(text).ok(), expected);
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
    fn counts_are_read() {
        let check = |text, expected: Option<u64>| assert_eq!(count(text).ok(), expected);
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
}
