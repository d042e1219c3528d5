//! The options of `hither trace`.
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{bail, Result};
use hither_profile::{BurstOptions, SliceClock, TraceOptions};

use hither_model::units;

use crate::cli::value_parsers::share_to;

const EXAMPLES: &str = "\
Examples:
  hither trace -- ./app --size 1000          profile in app.hither
  hither trace -o run1 -- ./app              profile in run1.hither
  hither trace --sample -- ./app             in long runs 5 % of the time, much faster
  hither trace --bursts -- ./app             with windows of all accesses, for hither sim
  hither trace --bursts 20ms/2s -- ./app     windows of 20 ms, one in 2 s
  hither trace --full -- ./small             every access of the run
  hither trace --from solve -- ./app         only from the first call of solve on
  mpirun -np 4 hither trace -o all -- ./app  all ranks in one profile
  hither trace -- mpirun -np 4 ./app         the same

The program's output, exit status and signals are its own: 128 + n for signal n, 127 when
it does not exist, 126 when it cannot be executed. 2: hither itself could not do it.";

/// What one set of the sampled part of a private cache stands for.
const LEAST_CACHE_LINES: u64 = 1024;

/// Run a program and record which threads share memory, and which pages, as a profile
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder for the profile, `.hither` is appended; by default the program's name here.
    /// A profile of that name is replaced once the new one is complete
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<PathBuf>,

    /// Length of a time slice of the untraced program: 500us, 10ms, 1s
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = slice)]
    slice: u64,

    /// What slices are measured by: the instructions that the program executes, 4 in a nanosecond,
    /// or wall time under the tracer. --bursts and --full go by wall time
    #[arg(long, value_name = "CLOCK", value_enum)]
    slice_clock: Option<SliceClockName>,

    /// Bytes in a line, the unit that threads share: a power of two from 64 to 4096
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line)]
    line: u32,

    /// Size of a private cache: a fetch brings a line into it. 1M is the L2 of a modern core; at
    /// least 1,024 lines
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = cache)]
    cache: u64,

    /// An access communicates with those of the other threads only that are among the last K users
    /// of the line, not with all; with --oracle. 2 is what the papers' authors' tracer does
    #[arg(long, value_name = "K", requires = "oracle", value_parser = clap::value_parser!(u32).range(1..=4))]
    sharers: Option<u32>,

    /// Trace only this share of the time and estimate the rest; all of the first 50 slices, then
    /// fewer and fewer
    #[arg(long, value_name = "RATIO", num_args = 0..=1, default_missing_value = "0.05", value_parser = ratio)]
    sample: Option<f64>,

    /// Count nothing before this function is called the first time
    #[arg(long, value_name = "FUNCTION")]
    from: Option<String>,

    /// Count nothing after this function is called
    #[arg(long, value_name = "FUNCTION")]
    until: Option<String>,

    /// Count only in these functions and what they call; separate them by commas
    #[arg(long, value_name = "F,G,...", value_parser = functions)]
    only_functions: Option<FunctionNames>,

    /// Do not trace the programs that this one starts
    #[arg(long)]
    no_follow: bool,

    /// Keep the profile about this small, by coarser slices and rows of several pages where
    /// necessary
    #[arg(long, value_name = "SIZE", default_value = "80M", value_parser = max_size)]
    max_size: u64,

    /// Record the accesses themselves in short windows, which `hither sim` needs: LENGTH
    /// of each thread's CPU time, once per EVERY
    #[arg(long, value_name = "LENGTH/EVERY", num_args = 0..=1, default_missing_value = "10ms/500ms",
        value_parser = bursts, conflicts_with_all = ["sample", "oracle", "only_functions"])]
    bursts: Option<BurstOptions>,

    /// Record all accesses, from the start until --max-size is reached: for small programs
    #[arg(long, conflicts_with_all = ["bursts", "sample", "oracle", "only_functions"])]
    full: bool,

    /// Keep no lines of the program's source in the profile: reports then name them but do not
    /// quote them
    #[arg(long)]
    pub no_source: bool,

    /// Keep nothing in the profile of the program's arguments, of folders, of the host's name and of
    /// source lines; names of files, functions, variables and threads stay
    #[arg(long)]
    pub redact: bool,

    /// Examine every single access: very slow, the reference for hither's own accuracy
    #[arg(long, conflicts_with = "sample")]
    oracle: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum SliceClockName {
    Instructions,
    Wall,
}

#[derive(Clone)]
struct FunctionNames(Vec<String>);

fn slice(text: &str) -> Result<u64, String> {
    let slice = units::parse_nanoseconds(text)?;
    match slice {
        100_000..=3_600_000_000_000 => Ok(slice),
        _ => Err("a slice lasts from 100us to 60min".to_string()),
    }
}

fn bursts(text: &str) -> Result<BurstOptions, String> {
    let wrong = || "write windows as 10ms/500ms, and -- between the options and the command";
    let (length, every) = text.split_once('/').ok_or_else(wrong)?;
    let [length, every] = [length, every].map(|part| units::parse_nanoseconds(part.trim()));
    let (length, every) = (length?, every?);
    match (100_000..=60_000_000_000).contains(&length) && length <= every {
        true => Ok(BurstOptions { length, every }),
        false => Err("a window lasts from 100us to 1min, and no longer than to the next".into()),
    }
}

fn line(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(line) if line.is_power_of_two() && (64..=4096).contains(&line) => Ok(line),
        _ => Err("a line is a power of two from 64 to 4096 bytes long".to_string()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    let share = share_to(1.0)(text).ok().filter(|share| *share > 0.0);
    share.ok_or_else(|| {
        let number = text.strip_suffix('%').unwrap_or(text);
        let wrong = match number.trim_end().parse::<f64>() {
            Ok(_) => "the share is above 0 and at most 1, or 100%",
            Err(_) => "write the share as 5% or 0.05, and -- between the options and the command",
        };
        wrong.to_owned()
    })
}

fn cache(text: &str) -> Result<u64, String> {
    match units::parse_bytes(text)? {
        size if (64 << 10..=1 << 30).contains(&size) => Ok(size),
        _ => Err("a private cache has from 64K to 1G".to_string()),
    }
}

fn max_size(text: &str) -> Result<u64, String> {
    match units::parse_bytes(text)? {
        size if size >= 1 << 20 => Ok(size),
        _ => Err("a profile needs 1M at least".to_string()),
    }
}

/// Splits at commas, except those within the parentheses or angle brackets of C++ names.
fn functions(text: &str) -> Result<FunctionNames, String> {
    let mut names = vec![String::new()];
    let mut depth = 0;
    for c in text.chars() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            names.push(String::new());
        } else if let Some(name) = names.last_mut() {
            name.push(c);
        }
    }
    let names: Vec<_> = names.iter().map(|n| n.trim().to_string()).collect();
    if names.iter().any(String::is_empty) {
        return Err("write the functions as f,g".to_string());
    }
    Ok(FunctionNames(names))
}

impl Args {
    /// What the profile remembers of them.
    ///
    /// # Errors
    /// When they contradict one another.
    pub fn options(&self) -> Result<TraceOptions> {
        let only = self.only_functions.clone();
        Ok(TraceOptions {
            slice: self.slice,
            slice_clock: self.slice_clock()?,
            line: self.line,
            sharers: self.sharers,
            sample: self.sample,
            oracle: self.oracle,
            follow: !self.no_follow,
            from: self.from.clone(),
            until: self.until.clone(),
            only_functions: only.map(|f| f.0).unwrap_or_default(),
            max_size: self.max_size,
            cache: self.cache.max(LEAST_CACHE_LINES * u64::from(self.line)),
            bursts: match self.full {
                true => Some(BurstOptions::default()),
                false => self.bursts,
            },
        })
    }

    /// Threads enter and leave a recorded window where a slice begins, and windows are of time.
    fn slice_clock(&self) -> Result<SliceClock> {
        let recorded = self.bursts.is_some() || self.full;
        match self.slice_clock {
            Some(SliceClockName::Instructions) if recorded => {
                bail!("--bursts and --full go by wall time; leave out --slice-clock")
            }
            Some(SliceClockName::Wall) => Ok(SliceClock::Wall),
            None if recorded => Ok(SliceClock::Wall),
            _ => Ok(SliceClock::Instructions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_lists() {
        let check = |text, expected: Option<&[&str]>| {
            let got = functions(text).ok().map(|f| f.0);
            let expected = expected.map(|e| e.iter().map(ToString::to_string).collect());
            assert_eq!(got, expected);
        };
        check("f", Some(&["f"]));
        check("f, g", Some(&["f", "g"]));
        check("f(int, int),g<a,b>", Some(&["f(int, int)", "g<a,b>"]));
        check("f,,g", None);
        check("", None);
    }

    #[test]
    fn bounds() {
        assert_eq!(slice("500us"), Ok(500_000));
        assert!(slice("99us").is_err());
        assert!(slice("2h").is_err());
        assert_eq!(line("4096"), Ok(4096));
        assert!(line("48").is_err());
        assert!(line("32").is_err());
        assert_eq!(ratio("0.1"), Ok(0.1));
        assert_eq!(ratio("5%"), Ok(0.05));
        assert!(ratio("0").is_err());
        assert!(ratio("1.5").is_err());
        assert!(ratio("NaN").is_err());
        let windows = |text| bursts(text).ok().map(|b| (b.length, b.every));
        assert_eq!(windows("10ms/500ms"), Some((10_000_000, 500_000_000)));
        assert_eq!(windows("1s / 1s"), Some((1_000_000_000, 1_000_000_000)));
        assert_eq!(windows("10ms"), None);
        assert_eq!(windows("10/500"), None);
        assert_eq!(windows("2s/1s"), None);
        assert_eq!(windows("1us/1s"), None);
        assert_eq!(windows("2min/3min"), None);
        assert_eq!(max_size("80M"), Ok(80 << 20));
        assert!(max_size("80k").is_err());
        assert_eq!(cache("256K"), Ok(256 << 10));
        assert!(cache("32K").is_err());
        assert!(cache("2G").is_err());
    }
}
