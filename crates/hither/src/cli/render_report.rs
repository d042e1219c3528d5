//! `hither stat` for people: verdict first, then what it rests on.
use super::style::{
    bytes, count, percent, ranges, shell_line, strip_control_characters, three_digits, written,
    TerminalStyle,
};
use super::{render_lines, render_matrix, render_structures};
use hither_model::metrics::exclusivity::ExclusivityMetrics;
use hither_model::metrics::figures::stat_figures;
use hither_model::metrics::metrics_report::{MetricsReport, RunSummary};
use hither_model::metrics::stable_phases::NO_STABLE_PHASES;
use hither_model::units::plural;
use hither_profile::RunEnd;
use std::collections::BTreeMap;

/// The whole report; `name` is the profile's path, for the commands it suggests.
pub fn render(report: &MetricsReport, name: &str, top: usize, style: TerminalStyle) -> String {
    let mut out = header(&report.run, style);
    out.push('\n');
    out.push_str(&verdict(report, style));
    section(&mut out, style, "Metrics", &metrics(report, style));
    section(
        &mut out,
        style,
        "Threads apart",
        &threads_apart(report, style),
    );
    if !report.matrix.0.is_empty() {
        section(
            &mut out,
            style,
            "Communication (thread x thread)",
            &communication(report, style),
        );
    }
    section(&mut out, style, "Phases", &phases(report, style));
    section(
        &mut out,
        style,
        "Data structures",
        &render_structures::table(report, top, style),
    );
    section(
        &mut out,
        style,
        "Source lines (from samples)",
        &render_lines::table(report, top, style),
    );
    let limits = report.limits.iter();
    let limits: String = limits
        .map(|l| style.wrap("  - ", &strip_control_characters(l), 4))
        .collect();
    section(&mut out, style, "What could not be seen", &limits);
    let next = if report.phases.len() > 1 {
        "stat --slices"
    } else {
        "report"
    };
    let name = shell_line([name].into_iter());
    out.push_str(&format!("\nnext: hither {next} {name}\n"));
    out
}

fn section(out: &mut String, style: TerminalStyle, title: &str, body: &str) {
    if !body.is_empty() {
        out.push_str(&format!("\n{}\n{body}", style.bold(title)));
    }
}

/// Command, size and end of a run.
pub fn header(run: &RunSummary, style: TerminalStyle) -> String {
    let command = strip_control_characters(&run.command.join(" "));
    let end = match &run.end {
        RunEnd::Interrupted if run.online => "cut short: it was left running".to_owned(),
        RunEnd::Interrupted => "cut short: tracing was stopped first".to_owned(),
        end => end.to_string(),
    };
    let sampled = match run.sampling_error {
        e if e > 0.0 && !run.online => format!(", sampled (error {})", percent(e)),
        _ => String::new(),
    };
    let fetched = fetched(run.fetches);
    let facts = format!(
        "{}: {:.2} s {}, {}, {}, {} {}{fetched}{sampled}, {} of memory used, {end}",
        command,
        run.seconds,
        seen(run.online),
        plural(run.recorded_threads as u64, "thread", "threads"),
        plural(run.processes as u64, "process", "processes"),
        count(run.accesses()),
        counted(run.online),
        bytes(run.footprint),
    );
    style.wrap("", &facts, 2)
}

/// How the run was seen.
pub fn seen(online: bool) -> &'static str {
    match online {
        true => "observed while it ran",
        false => "traced",
    }
}

/// What was counted.
pub fn counted(online: bool) -> &'static str {
    match online {
        true => "page faults seen (a sample of its accesses)",
        false => "accesses",
    }
}

/// `, 1.2 M fetches`, where they were counted.
pub fn fetched(fetches: Option<u64>) -> String {
    fetches.map_or_else(String::new, |n| format!(", {} fetches", count(n)))
}

/// On which nodes threads were counted.
pub fn counted_on(nodes: usize, from: &str) -> String {
    let nodes = plural(nodes as u64, "NUMA node", "NUMA nodes");
    let from = strip_control_characters(from);
    format!("Threads counted on {nodes} ({from}).")
}

fn verdict(report: &MetricsReport, style: TerminalStyle) -> String {
    let line = style.wrap(
        "Verdict: ",
        &format!("{}.", strip_control_characters(&report.verdict.sentence)),
        2,
    );
    let mut out = format!("{}\n", style.bold(line.trim_end()));
    for reason in &report.verdict.reasons {
        out.push_str(&style.wrap("  - ", &strip_control_characters(reason), 4));
    }
    let setup = counted_on(report.setup.nodes, &report.setup.nodes_from);
    out.push_str(&style.wrap("  - ", &setup, 4));
    out
}

fn metrics(report: &MetricsReport, style: TerminalStyle) -> String {
    let known = stat_figures(report).into_iter();
    let known = known.filter(|figure| figure.value.is_some());
    let mut rows: Vec<Vec<String>> = known
        .map(|f| vec![f.name, written(f.value, f.unit), f.meaning])
        .collect();
    if let Some(pages) = &report.pages {
        rows.push(by_exclusivity(&pages.best));
    }
    style.table(&[], rows, &[1])
}

/// Those that are left out of T, by name.
fn threads_apart(report: &MetricsReport, style: TerminalStyle) -> String {
    let mut named: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (at, thread) in (0..).zip(&report.threads) {
        if !thread.works {
            named.entry(&thread.name).or_default().push(at);
        }
    }
    if named.is_empty() {
        return String::new();
    }
    let list = named.iter();
    let list = list.map(|(name, at)| format!("{} {}", strip_control_characters(name), ranges(at)));
    let (works, do_not) = match report.threads.len() - report.run.active_threads {
        1 => ("1 hardly works".to_owned(), "does not"),
        n => (format!("{n} hardly work"), "do not"),
    };
    let text = format!(
        "{works} (less than a thousandth of the busiest one's accesses and instructions, or a hundredth in a process \
         that starts others) and {do_not} count as T above: {}",
        list.collect::<Vec<_>>().join("; ")
    );
    style.wrap("  ", &text, 2)
}

/// The matrix of the threads that work, and who of them is which rank of an MPI job.
fn communication(report: &MetricsReport, style: TerminalStyle) -> String {
    let working = (0..).zip(&report.threads).filter(|(_, t)| t.works);
    let rows: Vec<u32> = working.clone().map(|(at, _)| at).collect();
    let mut out = render_matrix::render(&report.matrix, &rows, style);
    let mut ranks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (at, thread) in working {
        if let Some(rank) = thread.rank {
            ranks.entry(rank).or_default().push(at);
        }
    }
    if !ranks.is_empty() {
        let of = |(rank, threads): (u32, Vec<u32>)| format!("{rank}: {}", ranges(&threads));
        let list: Vec<_> = ranks.into_iter().map(of).collect();
        let text = format!("threads of MPI ranks: {}", list.join("; "));
        out.push_str(&style.wrap("  ", &text, 2));
    }
    out
}

fn by_exclusivity(e: &ExclusivityMetrics) -> Vec<String> {
    let pages = &e.histogram_pages;
    let all: u64 = pages.iter().sum();
    let share = |bins: &[u64]| percent(bins.iter().sum::<u64>() as f64 / all.max(1) as f64);
    vec![
        "pages by E_page".to_owned(),
        share(&pages[10..]),
        format!(
            "at 100 %; {} at 70 to 90 %, {} below",
            share(&pages[7..10]),
            share(&pages[..7])
        ),
    ]
}

fn phases(report: &MetricsReport, style: TerminalStyle) -> String {
    if report.slices.is_empty() {
        return String::new();
    }
    if report.too_short_for_phases {
        let traced = report.slices.iter().filter(|s| s.traced).count();
        let too_few = format!(
            "{traced} slices were traced, too few to tell phases apart (at least {} are needed)",
            report.slices_for_phases
        );
        return style.wrap("  ", &too_few, 2);
    }
    if report.phases.len() < 2 {
        return style.wrap("  ", NO_STABLE_PHASES, 2);
    }
    let rows = report.phases.iter().enumerate();
    let rows = rows.map(|(n, p)| {
        vec![
            (n + 1).to_string(),
            format!("{:.2}", p.start_seconds),
            format!("{:.2}", p.seconds),
            three_digits(p.communication.heterogeneity),
            three_digits(p.communication.amount_per_second),
            count(p.accesses),
        ]
    });
    let header = ["phase", "from (s)", "for (s)", "C_H", "C_A/s", "accesses"];
    style.table(&header, rows.collect(), &[0, 1, 2, 3, 4, 5])
}
