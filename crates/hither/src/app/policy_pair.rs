//! Policies as they are asked for, by the same names in every verb: `os`, `compact`,
//! `locality+most-access`, `joint`, and what is published under a name of its own.
use anyhow::{bail, Result};
use hither_model::map::phase_plan::{MigrationLimits, PhaseRule};
use hither_model::map::{data, threads};
use hither_model::metrics::phase_detection::DIFF_MIN;
use hither_profile::Placement;

use super::map::options::{MapOptions, PhaseOptions, FALLBACK_POLICY, FIRST_TOUCH};

/// What places threads, and pages.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyPair {
    pub threads: ThreadPolicyArg,
    /// A data policy, or [`NEXT_TOUCH`]; `None` where nothing is said of pages.
    pub data: Option<String>,
    /// The name that stands for it, and phases that it follows.
    published: Option<&'static str>,
    pub phases: Option<PhaseOptions>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPolicyArg {
    /// As Linux spreads them.
    Os,
    /// A policy of `hither map`.
    Policy(&'static str),
    /// The fastest of the others that know the program or the machine.
    Joint,
}

/// A mechanism or baseline under the name that papers give it.
pub struct PublishedPolicy {
    pub name: &'static str,
    pub about: &'static str,
    /// What it stands for, but for its phases.
    stands_for: &'static str,
    phases: Option<(PhaseRule, MigrationLimits)>,
}

/// One line for each name.
pub const PUBLISHED: [PublishedPolicy; 5] = [
    PublishedPolicy {
        name: "opt",
        about: "OPT: scotch, remapping by its five conditions, pages by most-access",
        stands_for: "scotch+most-access",
        phases: Some((PhaseRule::Opt, MigrationLimits::OPT)),
    },
    PublishedPolicy {
        name: "kmaf",
        about:
            "kMAF: scotch every 100 ms by communication with ageing, pages by its eq. 6 with ageing",
        stands_for: "scotch+kmaf",
        phases: Some((PhaseRule::Kmaf, MigrationLimits::KMAF)),
    },
    PublishedPolicy {
        name: "spcd",
        about: "SPCD: matching; pages are left to the system",
        stands_for: "matching+first-touch",
        phases: None,
    },
    PublishedPolicy {
        name: "interleave",
        about: "threads are left to the system, pages go to the nodes in turn",
        stands_for: "os+interleave",
        phases: None,
    },
    PublishedPolicy {
        name: NEXT_TOUCH,
        about: "threads are left to the system, pages follow whoever touches them next",
        stands_for: "os+next-touch",
        phases: None,
    },
];

/// Pages of `joint`.
pub const JOINT_DATA: &str = "most-access";
/// Pages that move while the program runs: no policy for a placement.
pub const NEXT_TOUCH: &str = "next-touch";

/// What is compared where nothing is said.
pub const USUAL: [ThreadPolicyArg; 8] = [
    ThreadPolicyArg::Os,
    ThreadPolicyArg::Policy("compact"),
    ThreadPolicyArg::RANDOM,
    ThreadPolicyArg::Policy("scatter"),
    ThreadPolicyArg::Policy("locality"),
    ThreadPolicyArg::Policy("balanced-locality"),
    ThreadPolicyArg::Policy("distance"),
    ThreadPolicyArg::Joint,
];

impl ThreadPolicyArg {
    pub const RANDOM: ThreadPolicyArg = ThreadPolicyArg::Policy("random");

    pub fn name(self) -> &'static str {
        match self {
            ThreadPolicyArg::Os => "os",
            ThreadPolicyArg::Policy(name) => name,
            ThreadPolicyArg::Joint => "joint",
        }
    }

    /// A policy of `hither map` that knows where threads should be.
    pub fn is_known(self) -> bool {
        matches!(self, ThreadPolicyArg::Policy(_)) && !self.is_chance()
    }

    /// Another seed may put threads elsewhere, and nothing else tells where they should be.
    pub fn is_chance(self) -> bool {
        [ThreadPolicyArg::Os, ThreadPolicyArg::RANDOM].contains(&self)
    }
}

impl From<ThreadPolicyArg> for PolicyPair {
    fn from(threads: ThreadPolicyArg) -> PolicyPair {
        PolicyPair {
            threads,
            data: None,
            published: None,
            phases: None,
        }
    }
}

impl PolicyPair {
    pub fn name(&self) -> String {
        // Pages that are not placed go by first touch.
        let data = self.data.as_deref().filter(|data| *data != FIRST_TOUCH);
        match (self.published, data) {
            (Some(name), _) => name.to_owned(),
            (None, Some(data)) => format!("{}+{data}", self.threads.name()),
            (None, None) => self.threads.name().to_owned(),
        }
    }

    /// With pages placed so for its threads.
    pub fn with_data(self, data: &str) -> PolicyPair {
        PolicyPair {
            data: Some(data.to_owned()),
            ..self
        }
    }

    /// The data policy of the pages that it places; `None` where they are left to the system.
    pub fn placed_data(&self) -> Option<&str> {
        let data = self.data.as_deref();
        data.filter(|data| ![FIRST_TOUCH, NEXT_TOUCH].contains(data))
    }

    /// Whether pages move to whoever touches them next.
    pub fn moves_pages_by_touch(&self) -> bool {
        self.data.as_deref() == Some(NEXT_TOUCH)
    }

    /// Whether a placement, which is fixed before the program runs, can do it.
    ///
    /// # Errors
    /// A sentence that says where it works.
    pub fn check_placeable(&self) -> Result<(), String> {
        let name = self.name();
        if self.threads == ThreadPolicyArg::Joint {
            return Err("joint works in `hither sim`, where it is the fastest of what is compared; `hither map --policy best` keeps that".to_owned());
        }
        if self.moves_pages_by_touch() {
            return Err(format!("{name} moves pages while the program runs, which no placement can say; it works in `hither sim`"));
        }
        let mut possible = data::data_policies();
        possible.retain(|data| data.ignores_threads());
        let possible: Vec<_> = possible.iter().map(|data| data.name()).collect();
        match (self.threads, self.placed_data()) {
            (ThreadPolicyArg::Os, Some(data)) if !possible.contains(&data) => Err(format!("{name} would need to know where the system will run threads, as {data} places pages for them; it works in `hither sim`, and here os, os+{} do", possible.join(" and os+"))),
            _ => Ok(()),
        }
    }

    /// The options of a placement that it makes, which [`PolicyPair::left_to_system`] completes.
    ///
    /// # Errors
    /// When they say something else.
    pub fn map_options(&self, options: MapOptions) -> Result<MapOptions> {
        let name = self.name();
        if self.data.is_some() && options.data.is_some() {
            bail!("--policy {name} says how pages are placed; leave --data out");
        }
        if self.phases.is_some() && options.phases.is_some() {
            bail!("--policy {name} follows phases by a rule of its own; leave --phases out");
        }
        let policy = match self.threads {
            ThreadPolicyArg::Policy(name) => name,
            ThreadPolicyArg::Os | ThreadPolicyArg::Joint => FALLBACK_POLICY,
        };
        let data = match self.threads {
            ThreadPolicyArg::Os => Some(self.placed_data().unwrap_or(FIRST_TOUCH).to_owned()),
            _ => self.data.clone().or(options.data),
        };
        Ok(MapOptions {
            policy,
            data,
            phases: self.phases.or(options.phases),
            ..options
        })
    }

    /// The placement without what is left to the system.
    pub fn left_to_system(&self, placement: Placement) -> Placement {
        if self.threads != ThreadPolicyArg::Os {
            return placement;
        }
        let why = format!("Left to the system, as --policy {} says.", self.name());
        match self.placed_data() {
            Some(_) => placement.without_threads(why),
            None => placement.without_bindings(why),
        }
    }
}

/// # Errors
/// A sentence with the names that there are.
pub fn parse(text: &str) -> Result<PolicyPair, String> {
    if let Some(published) = PUBLISHED.iter().find(|p| p.name == text) {
        let phases = published.phases.map(|(rule, limits)| PhaseOptions {
            window: None,
            difference: DIFF_MIN,
            rule,
            limits,
        });
        return Ok(PolicyPair {
            published: Some(published.name),
            phases,
            ..parse(published.stands_for)?
        });
    }
    let (name, data) = match text.split_once('+') {
        Some((name, data)) => (name, Some(data)),
        None => (text, None),
    };
    let threads = match name {
        "os" => ThreadPolicyArg::Os,
        "joint" if data.is_none() => ThreadPolicyArg::Joint,
        "joint" => return Err("joint places pages itself; write it alone".to_owned()),
        _ => ThreadPolicyArg::Policy(policy(name)?),
    };
    if let Some(data) = data.filter(|data| *data != NEXT_TOUCH) {
        data::data_policy_by_name(data)?;
    }
    Ok(PolicyPair {
        data: data.map(str::to_owned),
        ..threads.into()
    })
}

/// The policy of this name.
///
/// # Errors
/// When there is none.
pub fn policy(name: &str) -> Result<&'static str, String> {
    let known = threads::THREAD_POLICIES.iter().map(|p| p.name());
    let found = known.clone().find(|known| *known == name);
    found.ok_or_else(|| match name {
        "scotch" => "this hither was built without libscotch, which the policies scotch, opt and kmaf map with".to_owned(),
        "best" => "best works in `hither map`, which keeps what is predicted to be the fastest; `hither sim` has joint for it".to_owned(),
        "cores" | "local" => format!("{name} works in `hither run`, which knows the machine but not the program"),
        _ if name.starts_with("preferred:") || name.starts_with("bind:") => {
            format!("{name} works in `hither run`, which gives it to the kernel")
        }
        _ => {
            let names: Vec<_> = known.chain(PUBLISHED.iter().map(|p| p.name)).collect();
            format!(
                "there is no policy \"{name}\": use os, joint, one of {}, or one with pages, as locality+most-access",
                names.join(", ")
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_and_written() {
        let check =
            |text: &str, name: &str| assert_eq!(parse(text).map(|w| w.name()), Ok(name.to_owned()));
        for name in [
            "os",
            "joint",
            "opt",
            "kmaf",
            "spcd",
            "interleave",
            "next-touch",
        ] {
            check(name, name);
        }
        check("locality+most-access", "locality+most-access");
        check("random+locality-balance:0.1", "random+locality-balance:0.1");
        check("random+random", "random+random");
        check("compact+first-touch", "compact");
        let wrong = |text: &str, part: &str| {
            let message = parse(text).expect_err(text);
            assert!(message.contains(part), "{message}");
        };
        wrong("best-ever", "compact");
        wrong("best", "hither map");
        wrong("os+nowhere", "most-access");
        wrong("joint+kmaf", "alone");
    }

    #[test]
    fn published_names_stand_for_policies() {
        let check = |name: &str, threads: &str, data: &str, interval: Option<u64>| {
            let pair = parse(name).expect(name);
            assert_eq!(pair.threads.name(), threads, "{name}");
            assert_eq!(pair.data.as_deref(), Some(data), "{name}");
            let phases = pair.phases.map(|p| p.limits.thread_interval);
            assert_eq!(phases, interval, "{name}");
        };
        check("opt", "scotch", "most-access", Some(1_000_000_000));
        check("kmaf", "scotch", "kmaf", Some(100_000_000));
        check("spcd", "matching", "first-touch", None);
        check("interleave", "os", "interleave", None);
        check("next-touch", "os", "next-touch", None);
    }

    #[test]
    fn what_no_placement_can_say_is_refused() {
        let check = |text: &str, part: Option<&str>| {
            let said = parse(text).expect(text).check_placeable().err();
            match part {
                None => assert_eq!(said, None, "{text}"),
                Some(part) => assert!(said.expect(text).contains(part), "{text}"),
            }
        };
        for fine in [
            "os",
            "interleave",
            "os+random",
            "opt",
            "kmaf",
            "spcd",
            "random+random",
        ] {
            check(fine, None);
        }
        check("joint", Some("--policy best"));
        check("next-touch", Some("works in `hither sim`"));
        check("locality+next-touch", Some("works in `hither sim`"));
        check("os+kmaf", Some("where the system will run threads"));
    }
}
