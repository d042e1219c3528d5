//! The stages joined: what a verb does, with typed options, without arguments and printing.
//!
//! ```text
//! map          profile, machine -> placement
//! study        recording, machines, placements (of map) -> forecast
//! best         map with the policies that a study finds to be the fastest
//! default_placement  what map does where no policy is named: by a short study, or by the verdict
//! assessment   profile, placement -> figures, findings, verdict: what report and check share
//! check        what was found against limits or an older profile
//! policy_pair  policies by their names, the same for every verb; published ones too
//! run          a placement or a rule, this machine -> what to do with a program
//! auto         policies and names for a program that is observed
//! ```
pub mod assessment;
pub mod auto;
pub mod best;
pub mod check;
pub mod default_placement;
pub mod map;
pub mod policy_pair;
pub mod run;
pub mod study;
