//! A figure that sums up a run, and how to read it: made by the metrics, compared by the
//! report and by gates.
use serde::{Deserialize, Serialize};

/// What a figure is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureUnit {
    /// 0 to 1.
    Share,
    /// Per cent above a mean, 0 and up.
    Percent,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Things, whole.
    Count,
    /// A plain number.
    #[default]
    Number,
}

impl FigureUnit {
    /// Differences are taken as they are; of the others, relative to the larger value.
    #[must_use]
    pub fn is_absolute(self) -> bool {
        matches!(self, FigureUnit::Share | FigureUnit::Percent)
    }
}

/// Which way is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BetterWhen {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It says how large or of what kind the run is.
    #[default]
    Neither,
}

/// One figure of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigure {
    /// As `docs/metrics.md` calls it: `E_app best`.
    pub name: String,
    /// In a few words.
    pub meaning: String,
    /// What it is counted in.
    pub unit: FigureUnit,
    /// Which way is good.
    pub better: BetterWhen,
    /// How far runs of one program differ; in the unit where that is absolute, else
    /// relative.
    pub spread: f64,
    /// `None` where the profile does not say.
    pub value: Option<f64>,
}
