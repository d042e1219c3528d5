//! Lists of numbers as the kernel writes them: `0-3,8`.

/// Numbers in ascending order, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List(Vec<u32>);

/// No machine or run has more.
const MOST: u32 = 1 << 20;

impl List {
    pub fn contains(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }

    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

impl std::str::FromStr for List {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write a list as 0-3,8".to_owned();
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: u32 = first.trim().parse().map_err(|_| wrong())?;
            let last: u32 = last.trim().parse().map_err(|_| wrong())?;
            if first > last {
                return Err(format!("{first}-{last} runs backwards"));
            }
            if last >= MOST {
                return Err(format!("{last} is more than any machine has"));
            }
            all.extend(first..=last);
        }
        all.sort_unstable();
        all.dedup();
        Ok(List(all))
    }
}

impl std::fmt::Display for List {
    /// Runs of neighbours become ranges.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (at, run) in runs.enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                _ => write!(f, "{comma}{}-{}", run[0], run[run.len() - 1])?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let check = |text: &str, want: Option<&str>| {
            let got = text.parse::<List>().ok().map(|l| l.to_string());
            assert_eq!(got.as_deref(), want, "{text}");
        };
        check("0", Some("0"));
        check("0-3,8", Some("0-3,8"));
        check("8,0,2,1,2", Some("0-2,8"));
        check("3-1", None);
        check("", None);
        check("1,", None);
        check("-1", None);
        check("0-99999999", None);
        check("0-", None);
    }
}
