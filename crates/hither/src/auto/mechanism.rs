//! How communication is found, and what can be set of it by name: what SPCD (III.C, table I) and kMAF (3.2, 3.4,
//! table 2) call configurable, with their values where they say one.
use std::collections::BTreeMap;
use std::time::Duration;

use hither_profile::{Nanos, PAGE_SIZE};

/// How communication is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectionMechanism {
    /// kMAF's tables with hither's own rules.
    Adaptive,
    /// As published.
    Kmaf,
    Spcd,
}

impl DetectionMechanism {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DetectionMechanism::Adaptive => "adaptive",
            DetectionMechanism::Kmaf => "kmaf",
            DetectionMechanism::Spcd => "spcd",
        }
    }

    /// The policy that maps threads where none is named, by the name that `hither map` gives it.
    #[must_use]
    pub fn usual_policy(self) -> &'static str {
        match self {
            DetectionMechanism::Adaptive => "locality-fast",
            DetectionMechanism::Kmaf => "scotch",
            DetectionMechanism::Spcd => "matching",
        }
    }
}

/// What can be set, in the order of [`PARAMETERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParameterIx {
    Granularity,
    Window,
    TableEntries,
    LookInterval,
    CausedShare,
    SubBlock,
    Sharers,
    CounterBits,
    Interval,
    Ageing,
    FilterThreshold,
}

/// Something that can be set.
struct Parameter {
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    least: f64,
    most: f64,
    /// It has no fraction.
    is_whole: bool,
    /// Where nothing is said, of `adaptive`, `kmaf` and `spcd`; `None`: it has no such thing.
    usual: [Option<f64>; 3],
}

const fn whole(
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    (least, most): (u32, u32),
    usual: [Option<f64>; 3],
) -> Parameter {
    Parameter {
        is_whole: true,
        ..fraction(name, unit, about, (least as f64, most as f64), usual)
    }
}

const fn fraction(
    name: &'static str,
    unit: &'static str,
    about: &'static str,
    (least, most): (f64, f64),
    usual: [Option<f64>; 3],
) -> Parameter {
    Parameter {
        name,
        unit,
        about,
        least,
        most,
        is_whole: false,
        usual,
    }
}

/// In the order of [`ParameterIx`].
const PARAMETERS: [Parameter; 11] = [
    whole(
        "granularity",
        "bytes",
        "of a region that threads share (SPCD III.C.1)",
        (64, 1 << 30),
        [None, None, Some(4096.0)],
    ),
    whole(
        "window",
        "ms",
        "within which two accesses are communication (SPCD III.C.2, which names no value)",
        (1, 86_400_000),
        [Some(30_000.0), None, Some(1000.0)],
    ),
    whole(
        "table-entries",
        "",
        "pages or regions that are known at a time (SPCD table I)",
        (1, 1 << 24),
        [Some(256_000.0); 3],
    ),
    whole(
        "look-interval",
        "ms",
        "from one look at faults to the next, at least (SPCD III.B.2)",
        (1, 200),
        [Some(10.0); 3],
    ),
    fraction(
        "caused-share",
        "%",
        "of all page faults that are to be caused ones (SPCD table I)",
        (0.0, 90.0),
        [Some(10.0); 3],
    ),
    whole(
        "sub-block",
        "bytes",
        "of the parts of a page, whose users are told apart (kMAF table 2); a power of two",
        (64, 4096),
        [None, Some(1024.0), None],
    ),
    whole(
        "sharers",
        "",
        "threads that are known of each part (kMAF table 2)",
        (2, 8),
        [None, Some(2.0), None],
    ),
    whole(
        "counter-bits",
        "",
        "of the counter that each page has for each node (kMAF table 2)",
        (2, 16),
        [None, Some(8.0), None],
    ),
    whole(
        "interval",
        "ms",
        "between two mappings (kMAF 3.4; SPCD names no value)",
        (10, 3_600_000),
        [Some(100.0); 3],
    ),
    fraction(
        "ageing",
        "",
        "what of the matrix each mapping leaves (kMAF 3.4.2; SPCD has none, which is 1)",
        (0.0, 1.0),
        [Some(0.75); 3],
    ),
    whole(
        "filter-threshold",
        "",
        "threads that have another partner before threads are mapped again (SPCD IV.A)",
        (1, 65_535),
        [Some(2.0), None, Some(2.0)],
    ),
];

/// What is set of a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanismParameters {
    mechanism: DetectionMechanism,
    values: [Option<f64>; PARAMETERS.len()],
}

impl MechanismParameters {
    /// With what is usual.
    #[must_use]
    pub fn of(mechanism: DetectionMechanism) -> MechanismParameters {
        let column = mechanism as usize;
        MechanismParameters {
            mechanism,
            values: std::array::from_fn(|at| PARAMETERS[at].usual[column]),
        }
    }

    /// Takes `NAME=VALUE`.
    ///
    /// # Errors
    /// A sentence that says what may be set.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("--parameter {text}: say NAME=VALUE, as in interval=100"))?;
        let own = |at: &usize| self.values[*at].is_some();
        let at = (0..PARAMETERS.len()).find(|&at| PARAMETERS[at].name == name);
        let Some(at) = at.filter(own) else {
            let names = (0..PARAMETERS.len())
                .filter(own)
                .map(|at| PARAMETERS[at].name);
            return Err(format!(
                "--parameter {text}: --mechanism {} has no parameter \"{name}\", but {}",
                self.mechanism.name(),
                names.collect::<Vec<_>>().join(", ")
            ));
        };
        let parameter = &PARAMETERS[at];
        self.values[at] = Some(parameter.read(value.trim()).ok_or_else(|| {
            let kind = if parameter.is_whole {
                "whole number"
            } else {
                "number"
            };
            let unit = match parameter.unit {
                "" => String::new(),
                unit => format!(" ({unit})"),
            };
            let power = if parameter.name == "sub-block" {
                ", a power of two"
            } else {
                ""
            };
            format!(
                "--parameter {text}: {name} is a {kind} from {} to {}{unit}{power}",
                parameter.least, parameter.most
            )
        })?);
        Ok(())
    }

    /// Names and values.
    pub fn named(&self) -> BTreeMap<String, f64> {
        let all = PARAMETERS.iter().zip(self.values);
        all.filter_map(|(parameter, value)| Some((parameter.name.to_owned(), value?)))
            .collect()
    }

    /// 0 of what the mechanism does not have.
    fn get(&self, at: ParameterIx) -> f64 {
        self.values[at as usize].unwrap_or_default()
    }

    fn milliseconds(&self, at: ParameterIx) -> Nanos {
        self.get(at) as Nanos * 1_000_000
    }

    pub fn granularity(&self) -> u64 {
        self.get(ParameterIx::Granularity) as u64
    }

    pub fn window(&self) -> Nanos {
        self.milliseconds(ParameterIx::Window)
    }

    pub fn table_entries(&self) -> usize {
        self.get(ParameterIx::TableEntries) as usize
    }

    pub fn look_interval(&self) -> Nanos {
        self.milliseconds(ParameterIx::LookInterval)
    }

    /// In per cent.
    pub fn caused_share(&self) -> f64 {
        self.get(ParameterIx::CausedShare)
    }

    pub fn sub_block(&self) -> u64 {
        self.get(ParameterIx::SubBlock) as u64
    }

    pub fn sharers(&self) -> usize {
        self.get(ParameterIx::Sharers) as usize
    }

    pub fn counter_bits(&self) -> u32 {
        self.get(ParameterIx::CounterBits) as u32
    }

    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.milliseconds(ParameterIx::Interval))
    }

    pub fn ageing(&self) -> f64 {
        self.get(ParameterIx::Ageing)
    }

    pub fn filter_threshold(&self) -> usize {
        self.get(ParameterIx::FilterThreshold) as usize
    }
}

impl Parameter {
    fn read(&self, text: &str) -> Option<f64> {
        let value: f64 = text.parse().ok()?;
        let fits = (self.least..=self.most).contains(&value)
            && (!self.is_whole || value.fract() == 0.0)
            && (self.name != "sub-block" || PAGE_SIZE.is_multiple_of(value as u64));
        fits.then_some(value)
    }
}

/// All of them with what is usual, for `--help`.
#[must_use]
pub fn describe_parameters() -> String {
    let mut text =
        "Set a parameter of the mechanism; may be given several times. By default:\n".to_owned();
    for parameter in &PARAMETERS {
        let unit = if parameter.unit.is_empty() { "" } else { " " };
        let usual = parameter.usual.iter().zip(["adaptive", "kmaf", "spcd"]);
        let usual = usual.filter_map(|(value, name)| Some(format!("{name} {}", (*value)?)));
        text += &format!(
            "\n{}: {}{unit}{} {}",
            parameter.name,
            usual.collect::<Vec<_>>().join(", "),
            parameter.unit,
            parameter.about
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [DetectionMechanism; 3] = [
        DetectionMechanism::Adaptive,
        DetectionMechanism::Kmaf,
        DetectionMechanism::Spcd,
    ];

    /// SPCD's table I and section IV.A, kMAF's table 2 and section 3.4.
    #[test]
    fn what_is_usual_is_what_the_papers_say() {
        let spcd = MechanismParameters::of(DetectionMechanism::Spcd);
        assert_eq!((spcd.granularity(), spcd.caused_share()), (4096, 10.0));
        assert_eq!(
            (spcd.table_entries(), spcd.filter_threshold()),
            (256_000, 2)
        );
        assert_eq!(spcd.look_interval(), 10_000_000);
        let kmaf = MechanismParameters::of(DetectionMechanism::Kmaf);
        assert_eq!((kmaf.sub_block(), kmaf.sharers()), (1024, 2));
        assert_eq!((kmaf.counter_bits(), kmaf.ageing()), (8, 0.75));
        assert_eq!(kmaf.interval(), Duration::from_millis(100));
    }

    #[test]
    fn each_is_where_its_name_says() {
        let names = ALL.map(|mechanism| MechanismParameters::of(mechanism).named());
        let check = |mechanism: DetectionMechanism,
                     text: &str,
                     got: fn(&MechanismParameters) -> f64,
                     expected: f64| {
            let mut parameters = MechanismParameters::of(mechanism);
            assert_eq!(parameters.set(text), Ok(()), "{text}");
            assert_eq!(got(&parameters), expected, "{text}");
            let before = &names[mechanism as usize];
            let changed: Vec<_> = parameters
                .named()
                .into_iter()
                .filter(|(name, value)| before[name] != *value)
                .collect();
            let (name, _) = text.split_once('=').expect("a pair");
            assert_eq!(changed.len(), 1, "{changed:?}");
            assert_eq!(changed[0].0, name);
        };
        use DetectionMechanism::{Adaptive, Kmaf, Spcd};
        check(Spcd, "granularity=64", |p| p.granularity() as f64, 64.0);
        check(Spcd, "window=5", |p| p.window() as f64, 5e6);
        check(Kmaf, "table-entries=7", |p| p.table_entries() as f64, 7.0);
        check(Spcd, "look-interval=20", |p| p.look_interval() as f64, 2e7);
        check(
            Adaptive,
            "caused-share=2.5",
            MechanismParameters::caused_share,
            2.5,
        );
        check(Kmaf, "sub-block=64", |p| p.sub_block() as f64, 64.0);
        check(Kmaf, "sharers=4", |p| p.sharers() as f64, 4.0);
        check(Kmaf, "counter-bits=16", |p| p.counter_bits().into(), 16.0);
        check(
            Adaptive,
            "interval=50",
            |p| p.interval().as_secs_f64(),
            0.05,
        );
        check(Kmaf, "ageing=0.6", MechanismParameters::ageing, 0.6);
        check(
            Spcd,
            "filter-threshold=4",
            |p| p.filter_threshold() as f64,
            4.0,
        );
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let check = |mechanism, text: &str, what: &str| {
            let mut parameters = MechanismParameters::of(mechanism);
            let error = parameters.set(text).expect_err(text);
            assert!(error.contains(what) && error.contains(text), "{error}");
            assert_eq!(parameters, MechanismParameters::of(mechanism));
        };
        use DetectionMechanism::{Kmaf, Spcd};
        check(Spcd, "granularity", "NAME=VALUE");
        check(Spcd, "sub-block=1024", "granularity, window, table-entries");
        check(Kmaf, "window=5", "has no parameter \"window\"");
        check(Kmaf, "sub-block=100", "a power of two");
        check(Kmaf, "sub-block=8192", "from 64 to 4096 (bytes)");
        check(Kmaf, "sharers=2.5", "whole number from 2 to 8");
        check(Kmaf, "ageing=1.1", "number from 0 to 1");
        check(Kmaf, "ageing=nan", "number from 0 to 1");
        check(Spcd, "look-interval=0", "from 1 to 200 (ms)");
    }

    #[test]
    fn all_are_described() {
        let text = describe_parameters();
        for parameter in &PARAMETERS {
            assert!(text.contains(parameter.name), "{text}");
        }
        assert!(
            text.contains("window: adaptive 30000, spcd 1000 ms"),
            "{text}"
        );
    }
}
