//! `--policy` as the verbs take it: any policy by its name, or one for threads and one for pages.
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use std::ffi::OsStr;

use crate::app::policy_pair::{self, PolicyPair, PUBLISHED};
use hither_model::map::threads::THREAD_POLICIES;

/// The system's own placement of threads.
pub const OS: (&str, &str) = (
    "os",
    "threads as Linux spreads them; nothing is bound, but for pages with os+DATA",
);

/// Reads a policy. Its names are for completion by the shell only, as any two can be joined.
#[derive(Clone)]
pub struct PolicyParser<T: Clone> {
    read: fn(&str) -> Result<T, String>,
    /// Names beside those of all verbs.
    more: &'static [&'static str],
}

impl PolicyParser<PolicyPair> {
    /// Of policies that a placement can be made by.
    pub const PLACEABLE: PolicyParser<PolicyPair> = PolicyParser {
        read: placeable,
        more: &[],
    };
    /// Of all that can be simulated.
    pub const SIMULATED: PolicyParser<PolicyPair> = PolicyParser {
        read: policy_pair::parse,
        more: &["joint"],
    };
}

impl<T: Clone> PolicyParser<T> {
    pub const fn new(
        read: fn(&str) -> Result<T, String>,
        more: &'static [&'static str],
    ) -> PolicyParser<T> {
        PolicyParser { read, more }
    }
}

/// # Errors
/// A sentence, where there is no such policy, or a placement cannot do what it says.
pub fn placeable(text: &str) -> Result<PolicyPair, String> {
    let pair = policy_pair::parse(text)?;
    pair.check_placeable()?;
    Ok(pair)
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for PolicyParser<T> {
    type Value = T;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        self.read.parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let threads = THREAD_POLICIES.iter().map(|p| p.name());
        let published = PUBLISHED.iter().map(|p| p.name);
        let all = threads.chain(published).chain([OS.0]);
        Some(Box::new(
            all.chain(self.more.iter().copied()).map(PossibleValue::new),
        ))
    }
}
