//! What `profile.json` holds besides [`ProfileMeta`]: which tables there are.
use crate::meta::ProfileMeta;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(crate) const PROFILE_JSON: &str = "profile.json";

/// `profile.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProfileJson {
    #[serde(flatten)]
    pub meta: ProfileMeta,
    /// By name. A table that is not here could not be written.
    pub tables: BTreeMap<String, TableInfo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableInfo {
    pub rows: usize,
}
