//! Lists of processing units as the kernel and taskset write them: `0-3,8,10-14:2`.
use std::fmt;
use std::str::FromStr;

/// PUs by the kernel's number. Nothing says that they exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PuList(Vec<PuStride>);

/// `first-last:step`, both ends included; step is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PuStride {
    first: u32,
    last: u32,
    step: u32,
}

impl FromStr for PuList {
    type Err = String;

    fn from_str(text: &str) -> Result<PuList, String> {
        let parts = text.trim().split(',');
        let strides: Option<Vec<PuStride>> = parts.map(|part| parse_stride(part.trim())).collect();
        strides
            .map(PuList)
            .ok_or_else(|| "write the PUs as 0-3,8 or 0-14:2".to_owned())
    }
}

fn parse_stride(part: &str) -> Option<PuStride> {
    let (range, step) = part.split_once(':').unwrap_or((part, "1"));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let stride = PuStride {
        first: parse_digits(first)?,
        last: parse_digits(last)?,
        step: parse_digits(step)?,
    };
    let ranged = range.contains('-') || !part.contains(':');
    (ranged && stride.first <= stride.last && stride.step > 0).then_some(stride)
}

/// Digits only: `parse` alone would take a sign.
fn parse_digits(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

impl PuList {
    /// Whether the list names this PU, by its OS index.
    #[must_use]
    pub fn contains(&self, os: u32) -> bool {
        let within = |s: &PuStride| {
            (s.first..=s.last).contains(&os) && (os - s.first).is_multiple_of(s.step)
        };
        self.0.iter().any(within)
    }

    /// Every number named, as often as it is. Long where a range is: stop early.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let strides = self.0.iter();
        strides.flat_map(|s| (s.first..=s.last).step_by(s.step as usize))
    }

    /// Ascending numbers as ranges: `0-3,8`.
    #[must_use]
    pub fn from_numbers(numbers: impl IntoIterator<Item = u32>) -> PuList {
        let mut strides: Vec<PuStride> = Vec::new();
        for os in numbers {
            match strides.last_mut() {
                Some(s) if s.last.checked_add(1) == Some(os) => s.last = os,
                _ => strides.push(PuStride {
                    first: os,
                    last: os,
                    step: 1,
                }),
            }
        }
        PuList(strides)
    }
}

impl fmt::Display for PuList {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (at, s) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}", s.first)?;
            if s.last > s.first {
                write!(f, "-{}", s.last)?;
            }
            if s.step > 1 {
                write!(f, ":{}", s.step)?;
            }
        }
        Ok(())
    }
}
