//! What is found in a profile, without drawing it: what the page, `--text` and
//! `hither check` have in common.
mod by_policy;
pub mod figures;
mod findings;
mod machine;
pub mod prediction;
pub mod setup;
mod verdict;

use super::policy_pair::PolicyPair;
use crate::report::build::compare::{ComparedStructure, ComparisonSide};
use crate::report::build::safe_text::plain_text;
use crate::report::build::structures::declaration_site;
use crate::report::page::{PageSizeFigures, ReportVerdict, StructureFigures};
use anyhow::{bail, Result};
use hither_model::metrics::findings::SuggestedCommands;
use hither_model::metrics::page_access::PageAccessTable;
use hither_model::metrics::residence::NodeResidence;
use hither_model::metrics::structures::StructureMetrics;
use hither_model::metrics::{self, MetricsSetup, PageSize, ProfileAnalysis};
use hither_profile::{Finding, Placement, Profile, RunFigure};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// On what threads and pages are counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssessmentOptions {
    /// The placement to count threads and pages by.
    pub placement: Option<PathBuf>,
    /// The policy to place threads and pages by for that, without a placement.
    pub policy: Option<PolicyPair>,
    /// NUMA nodes to count the threads on; `None` for those of the machine.
    pub nodes: Option<u16>,
    /// `None` for the machine of the placement, or the traced one.
    pub topology: Option<String>,
    /// What a page is; what is drawn is of 4 KiB.
    pub page_size: PageSize,
    /// Nothing shown says what [`Profile::redact`] takes out.
    pub redact: bool,
}

impl AssessmentOptions {
    /// The machine, as it is typed for other verbs.
    pub fn machine(&self) -> Vec<String> {
        let topology = self.topology.clone();
        topology.map_or_else(Vec::new, |name| vec!["--topology".to_owned(), name])
    }
}

/// What the user gave, read.
pub struct AssessmentInput {
    /// Where the profile is, and what to call it.
    pub folder: PathBuf,
    pub file: PathBuf,
    /// The host's name, which is not shown.
    redacted: Option<String>,
    pub profile: Profile,
    pub placement: Option<(PathBuf, Placement)>,
    pub machine: machine::ReportMachine,
    /// The placement is that of a policy.
    by_policy: bool,
    /// The machine as the user named it, to be typed again.
    named: Vec<String>,
    setup: MetricsSetup,
}

impl AssessmentInput {
    /// # Errors
    /// One sentence when something cannot be read, or the placement is for something else.
    pub fn read(file: &Path, options: &AssessmentOptions) -> Result<Self> {
        let mut profile = hither_profile::read(file)?.by_roles();
        let redacted = options
            .redact
            .then(|| profile.meta.machine.hostname.clone());
        if options.redact {
            profile.redact();
        }
        let placement = match &options.placement {
            Some(file) => {
                let placement = hither_profile::read_placement(file)?;
                let shown = shown_path(file, options.redact);
                Some((shown, placement.by_roles(&profile.roles)))
            }
            None => by_policy::placement_by_policy(file, options, &profile)?,
        };
        let placed = placement.as_ref().map(|(file, p)| (file.as_path(), p));
        let machine = machine::machine(&profile, placed, options.topology.as_deref())?;
        let counted_on = machine.counted_on.as_deref();
        let setup = setup::setup(
            &profile.meta.machine,
            options.nodes,
            counted_on,
            options.page_size,
        )?;
        let mut named = options.machine();
        for word in named.iter_mut().filter(|_| options.redact) {
            *word = shown_path(Path::new(word), true).display().to_string();
        }
        Ok(AssessmentInput {
            folder: file.to_owned(),
            file: shown_path(file, options.redact),
            redacted,
            profile,
            placement,
            by_policy: options.policy.is_some(),
            machine,
            named,
            setup,
        })
    }

    pub fn placement_given(&self) -> Option<(&Path, &Placement)> {
        let placement = self.placement.as_ref();
        placement.map(|(file, p)| (file.as_path(), p))
    }

    /// Its pages.
    #[must_use]
    pub fn page_table(&self) -> Arc<PageAccessTable> {
        page_table(&self.profile, &self.setup)
    }

    /// `table`: [`Self::page_table`].
    #[must_use]
    pub fn assess(&self, table: Arc<PageAccessTable>) -> Assessment {
        let placed = self.placement_given();
        // What a policy places has no file that a command could name.
        let file = placed.map(|p| p.0).filter(|_| !self.by_policy);
        let commands = findings::commands(&self.profile, &self.file, &self.named, file);
        let placement = placed.map(|p| p.1);
        let setup = self.setup.clone();
        Assessment::assess_profile(&self.profile, table, commands, placement, setup)
    }

    #[must_use]
    pub fn comparison_side(&self, assessment: &Assessment) -> ComparisonSide {
        side(&self.profile, &self.file, assessment)
    }

    /// Another profile, counted on the same machine, its pages where it touched them first.
    ///
    /// # Errors
    /// One sentence when it cannot be read.
    pub fn load_other(&self, file: &Path) -> Result<ComparisonSide> {
        let mut profile = hither_profile::read(file)?.by_roles();
        if self.redacted.is_some() {
            profile.redact();
        }
        let file = &shown_path(file, self.redacted.is_some());
        if profile.meta.is_online() != self.profile.meta.is_online() {
            bail!("one of {} and {} was traced and the other observed by hither auto, so their counts mean different things; compare two of a kind", file.display(), self.file.display());
        }
        let commands = findings::commands(&profile, file, &self.named, None);
        let (table, setup) = (page_table(&profile, &self.setup), self.setup.clone());
        let assessment = Assessment::assess_profile(&profile, table, commands, None, setup);
        Ok(side(&profile, file, &assessment))
    }
}

fn page_table(profile: &Profile, setup: &MetricsSetup) -> Arc<PageAccessTable> {
    let (rows, regions) = (&profile.pages, &profile.regions);
    Arc::new(PageAccessTable::from_rows(rows, regions, setup.page_size))
}

/// A path, or just its last part.
fn shown_path(path: &Path, redact: bool) -> PathBuf {
    let name = path.file_name().filter(|_| redact);
    name.map_or_else(|| path.to_owned(), PathBuf::from)
}

/// What was found.
pub struct Assessment {
    pub analysis: ProfileAnalysis,
    /// E_app and first touch by size of page, larger ones than 4 KiB.
    pub larger: Vec<PageSizeFigures>,
    pub residence: NodeResidence,
    pub verdict: ReportVerdict,
    /// Worst first.
    pub findings: Vec<Finding>,
}

impl Assessment {
    fn assess_profile(
        profile: &Profile,
        table: Arc<PageAccessTable>,
        commands: SuggestedCommands,
        placement: Option<&Placement>,
        setup: MetricsSetup,
    ) -> Self {
        let nodes = setup.nodes;
        // Two things that take long with many pages and do not need one another.
        let (analysis, larger) = std::thread::scope(|scope| {
            let larger = scope.spawn(|| figures::larger_pages(profile, &table, nodes));
            let analysis = ProfileAnalysis::with_page_table(profile, setup, Arc::clone(&table));
            (analysis, join_thread(larger))
        });
        let residence = match placement {
            Some(placement) => NodeResidence::from_placement(&analysis, profile, placement),
            None => NodeResidence::from_first_touch(&analysis),
        };
        Assessment {
            verdict: verdict::verdict(&analysis.report, placement),
            findings: findings::findings(profile, &analysis, &residence, &larger, commands),
            analysis,
            larger,
            residence,
        }
    }

    /// The shares of what is remote, then the figures of `hither stat`.
    #[must_use]
    pub fn figures(&self) -> Vec<RunFigure> {
        let mut all = metrics::figures::remote_figures(&self.analysis, &self.residence);
        all.extend(metrics::figures::compared_figures(&self.analysis.report));
        all
    }
}

/// A profile as comparisons take it.
fn side(profile: &Profile, file: &Path, assessment: &Assessment) -> ComparisonSide {
    let report = &assessment.analysis.report;
    let row = |s: &StructureMetrics| ComparedStructure {
        name: plain_text(&s.name),
        type_name: plain_text(&s.type_name),
        kind: s.kind,
        process: profile.objects[s.object.at()].process.0,
        site: declaration_site(&profile.objects[s.object.at()]),
        figures: StructureFigures {
            object: s.object.0,
            size: s.size,
            reads: s.reads,
            writes: s.writes,
            share: s.share,
            exclusivity: s.exclusivity,
            accuracy: s.first_touch_accuracy,
        },
    };
    ComparisonSide {
        file: plain_text(&file.display().to_string()),
        run: figures::run(profile, report),
        verdict: assessment.verdict.clone(),
        findings: assessment.findings.clone(),
        figures: assessment.figures(),
        rows: report.structures.iter().map(row).collect(),
    }
}

/// What a thread made; its panic becomes ours.
pub fn join_thread<T>(thread: std::thread::ScopedJoinHandle<T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
