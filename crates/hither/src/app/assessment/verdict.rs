//! The page's first sentence, and what can be gained.
use crate::report::build::safe_text::plain_text;
use crate::report::page;
use hither_model::metrics::figures::verdict_figures;
use hither_model::metrics::MetricsReport;
use hither_model::units::as_sentence;
use hither_profile::{Placement, TrafficUnit};

pub fn verdict(report: &MetricsReport, placement: Option<&Placement>) -> page::ReportVerdict {
    page::ReportVerdict {
        sentence: as_sentence(&report.verdict.sentence),
        threads: report.verdict.thread_mapping,
        threads_undecided: report.verdict.threads_undecided,
        data: report.verdict.data_mapping,
        data_undecided: report.verdict.data_undecided,
        reasons: report.verdict.reasons.clone(),
        figures: verdict_figures(report),
        gain: gain(report, placement),
    }
}

/// Bounds that the metrics give; they say nothing of time.
fn gain(report: &MetricsReport, placement: Option<&Placement>) -> Vec<String> {
    let mut out = Vec::new();
    if report.run.active_threads == 0 {
        return out;
    }
    let pages = report.pages.as_ref();
    let unit = report.run.traffic;
    let pages = pages.filter(|_| !report.verdict.data_undecided);
    if let Some((pages, first)) = pages.and_then(|p| Some((p, p.traffic.first_touch?))) {
        let (now, most) = (first.local * 100.0, pages.traffic.best * 100.0);
        if report.setup.nodes < 2 {
            out.push("With one node every access is local.".to_owned());
        } else if most - now < 1.0 {
            out.push(format!("First touch makes {now:.0} % of the {unit} local, and no placement of pages can make more of them local."));
        } else {
            out.push(format!("First touch makes {now:.0} % of the {unit} local; with every page on the node that uses it most it would be {most:.0} %."));
        }
    }
    if let Some(placement) = placement {
        out.push(format!(
            "The placement shown here: {}",
            plain_text(&placement.why)
        ));
    }
    let counted = match report.run.sampling_error {
        _ if report.run.online => {
            "are those of the page faults that were seen, a sample".to_owned()
        }
        error if error > 0.0 => format!(
            "are good to about {:.1} %, since the run was sampled",
            error * 100.0
        ),
        _ if unit == TrafficUnit::Fetches => {
            "are estimates: of the lines of memory one in 64 is followed".to_owned()
        }
        _ => "are exact counts of this run".to_owned(),
    };
    out.push(format!("These shares {counted}."));
    out
}
