//! What is wrong, as the page says it: the finders' findings with command lines to copy.
use crate::report::build::safe_text::{copyable_text, plain_sentence, plain_text};
use crate::report::page::PageSizeFigures;
use hither_model::metrics::belonging::work_of_nodes;
use hither_model::metrics::findings::{find_all, FindingContext, SuggestedCommands};
use hither_model::metrics::residence::NodeResidence;
use hither_model::metrics::{PageSize, ProfileAnalysis};
use hither_profile::{shell_line, Finding, FindingLine, Profile, SuggestedFix};
use std::path::Path;

/// All findings, worst first. `larger` are the figures of the larger sizes of pages.
pub fn findings(
    profile: &Profile,
    analysis: &ProfileAnalysis,
    residence: &NodeResidence,
    larger: &[PageSizeFigures],
    commands: SuggestedCommands,
) -> Vec<Finding> {
    let smallest = analysis.report.pages.iter();
    let smallest = smallest.map(|p| (PageSize::K4.bytes(), p.best.app));
    let sizes: Vec<(u64, f64)> = smallest
        .chain(larger.iter().map(|size| (size.bytes, size.best.app)))
        .collect();
    let case = FindingContext {
        profile,
        analysis,
        residence,
        sizes: &sizes,
        work: work_of_nodes(&analysis.traffic, residence.nodes, &residence.threads),
        commands,
    };
    find_all(&case).into_iter().map(shown).collect()
}

/// Command lines that fixes name; `file` is the profile's, `machine` the options that name
/// the machine.
pub fn commands(
    profile: &Profile,
    file: &Path,
    machine: &[String],
    placement: Option<&Path>,
) -> SuggestedCommands {
    let placement = match placement {
        Some(path) => path.to_owned(),
        None => file.with_extension("place.json"),
    };
    let quoted = |path: &Path| shell_line([path.display().to_string()].iter());
    SuggestedCommands {
        profile: [quoted(file)]
            .into_iter()
            .chain(machine.iter().map(|word| shell_line([word].iter())))
            .collect::<Vec<_>>()
            .join(" "),
        placement: quoted(&placement),
        program: shell_line(profile.meta.command.iter()),
    }
}

/// Texts of the program made harmless.
fn shown(finding: Finding) -> Finding {
    let line = |l: FindingLine| FindingLine {
        file: plain_text(&l.file),
        function: plain_text(&l.function),
        ..l
    };
    let fix = |f: SuggestedFix| SuggestedFix {
        what: plain_text(&f.what),
        copy: copyable_text(&f.copy),
    };
    Finding {
        title: plain_text(&finding.title),
        evidence: finding
            .evidence
            .iter()
            .map(|text| plain_sentence(text))
            .collect(),
        lines: finding.lines.into_iter().map(line).collect(),
        fixes: finding.fixes.into_iter().map(fix).collect(),
        ..finding
    }
}
