//! What is wrong, as the page says it: the finders' findings with command lines to copy.
use crate::app::text;
use crate::report::build::text::{copied, plain};
use crate::report::page::PageSizeFigures;
use hither_model::metrics::findings::{find, Case, Commands};
use hither_model::metrics::ground::Ground;
use hither_model::metrics::{Analysis, PageSize};
use hither_profile::{Finding, FindingLine, Fix, Profile};
use std::path::Path;

/// All findings, worst first. `larger` are the figures of the larger sizes of pages.
pub fn findings(
    profile: &Profile,
    analysis: &Analysis,
    ground: &Ground,
    larger: &[PageSizeFigures],
    commands: Commands,
) -> Vec<Finding> {
    let smallest = analysis.report.pages.iter();
    let smallest = smallest.map(|p| (PageSize::K4.bytes(), p.best.app));
    let sizes: Vec<(u64, f64)> = smallest
        .chain(larger.iter().map(|size| (size.bytes, size.best.app)))
        .collect();
    let case = Case {
        profile,
        analysis,
        ground,
        sizes: &sizes,
        commands,
    };
    find(&case).into_iter().map(shown).collect()
}

/// Command lines that fixes name; `file` is the profile's, `machine` the options that name
/// the machine.
pub fn commands(
    profile: &Profile,
    file: &Path,
    machine: &[String],
    placement: Option<&Path>,
) -> Commands {
    let placement = match placement {
        Some(path) => path.to_owned(),
        None => file.with_extension("place.json"),
    };
    let quoted = |path: &Path| text::shell_line([path.display().to_string()].iter());
    Commands {
        profile: [quoted(file)]
            .into_iter()
            .chain(machine.iter().map(|word| text::shell_line([word].iter())))
            .collect::<Vec<_>>()
            .join(" "),
        placement: quoted(&placement),
        program: text::shell_line(profile.meta.command.iter()),
    }
}

/// Texts of the program made harmless.
fn shown(finding: Finding) -> Finding {
    let line = |l: FindingLine| FindingLine {
        file: plain(&l.file),
        function: plain(&l.function),
        ..l
    };
    let fix = |f: Fix| Fix {
        what: plain(&f.what),
        copy: copied(&f.copy),
    };
    Finding {
        title: plain(&finding.title),
        evidence: finding.evidence.iter().map(|text| plain(text)).collect(),
        lines: finding.lines.into_iter().map(line).collect(),
        fixes: finding.fixes.into_iter().map(fix).collect(),
        ..finding
    }
}
