//! Placements as they are asked for: `os`, `compact`, `locality+most-access`, `joint`.
use hither_model::map::{data, threads};

/// What places threads, and pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyPair {
    pub threads: ThreadPolicyArg,
    /// A data policy; `None` to leave pages to the system.
    pub data: Option<String>,
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

/// Pages of `joint`.
pub const JOINT_DATA: &str = "most-access";

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
        }
    }
}

impl PolicyPair {
    pub fn name(&self) -> String {
        match &self.data {
            Some(data) => format!("{}+{data}", self.threads.name()),
            None => self.threads.name().to_owned(),
        }
    }
}

pub fn parse(text: &str) -> Result<PolicyPair, String> {
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
    if let Some(data) = data {
        data::data_policy_by_name(data)?;
    }
    Ok(PolicyPair {
        threads,
        // Pages that are not placed go by first touch.
        data: data
            .filter(|data| *data != "first-touch")
            .map(str::to_owned),
    })
}

/// The policy of this name.
///
/// # Errors
/// When there is none.
pub fn policy(name: &str) -> Result<&'static str, String> {
    let known = threads::THREAD_POLICIES.iter().map(|p| p.name());
    let found = known.clone().find(|known| *known == name);
    found.ok_or_else(|| {
        let names: Vec<_> = known.collect();
        format!(
            "there is no policy \"{name}\": use os, joint, or one of {}",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_and_written() {
        let check =
            |text: &str, name: &str| assert_eq!(parse(text).map(|w| w.name()), Ok(name.to_owned()));
        check("os", "os");
        check("locality+most-access", "locality+most-access");
        check("random+locality-balance:0.1", "random+locality-balance:0.1");
        check("compact+first-touch", "compact");
        check("joint", "joint");
        let wrong = |text: &str, part: &str| {
            let message = parse(text).expect_err(text);
            assert!(message.contains(part), "{message}");
        };
        wrong("best-ever", "compact");
        wrong("os+nowhere", "most-access");
        wrong("joint+kmaf", "alone");
    }
}
