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
    /// relative. 0 where runs are not compared by it.
    pub spread: f64,
    /// What mapping threads or pages asks of it: `at least 100`. `None` if the verdict does not go by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<String>,
    /// `None` where the profile does not say.
    pub value: Option<f64>,
}

impl RunFigure {
    /// One that says how large or of what kind the run is.
    #[must_use]
    pub fn new(
        name: &str,
        value: Option<f64>,
        unit: FigureUnit,
        meaning: impl Into<String>,
    ) -> Self {
        RunFigure {
            name: name.to_owned(),
            meaning: meaning.into(),
            unit,
            value,
            ..RunFigure::default()
        }
    }

    /// Comparisons list it.
    #[must_use]
    pub fn varies(self, spread: f64) -> Self {
        RunFigure { spread, ..self }
    }

    /// Comparisons list it, and less is better.
    #[must_use]
    pub fn lower_is_better(self, spread: f64) -> Self {
        let better = BetterWhen::Lower;
        RunFigure { better, ..self }.varies(spread)
    }

    /// Comparisons list it, and more is better.
    #[must_use]
    pub fn higher_is_better(self, spread: f64) -> Self {
        let better = BetterWhen::Higher;
        RunFigure { better, ..self }.varies(spread)
    }

    /// The verdict goes by it.
    #[must_use]
    pub fn requires(self, required: Option<String>) -> Self {
        RunFigure { required, ..self }
    }
}
