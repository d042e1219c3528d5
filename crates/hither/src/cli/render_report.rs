//! `hither stat` for people: verdict first, then what it rests on.
use super::render_matrix;
use super::style::{
    bytes, count, percent, shell_line, strip_control_characters, three_digits, written,
    TerminalStyle,
};
use hither_model::metrics::exclusivity::ExclusivityMetrics;
use hither_model::metrics::figures::stat_figures;
use hither_model::metrics::metrics_report::{MetricsReport, RunSummary};
use hither_model::metrics::stable_phases::NO_STABLE_PHASES;
use hither_model::metrics::structures::StructureMetrics;
use hither_profile::{RunEnd, ThreadIx};
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
        let drawn = render_matrix::render(&report.matrix, report.run.threads, style);
        section(&mut out, style, "Communication (thread x thread)", &drawn);
    }
    section(&mut out, style, "Phases", &phases(report, style));
    section(
        &mut out,
        style,
        "Data structures",
        &structures(report, top, style),
    );
    section(
        &mut out,
        style,
        "Source lines (from samples)",
        &lines(report, top, style),
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

pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
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
    let setup = format!(
        "Threads counted on {} ({}).",
        plural(report.setup.nodes as u64, "NUMA node", "NUMA nodes"),
        strip_control_characters(&report.setup.nodes_from)
    );
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
    let text = format!(
        "{} do less than a thousandth of the busiest one's accesses and instructions and do not \
         count as T above: {}",
        report.threads.len() - report.run.active_threads,
        list.collect::<Vec<_>>().join("; ")
    );
    style.wrap("  ", &text, 2)
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
            "{traced} slices were traced, too few to tell phases apart (it takes {})",
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

fn structures(report: &MetricsReport, top: usize, style: TerminalStyle) -> String {
    let rows = report.structures.iter().take(top).map(structure_row);
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "name",
        if report.run.online {
            "faults"
        } else {
            "accesses"
        },
        "share",
        "fetches",
        "size",
        "first touch",
        "E",
        "right",
    ];
    let mut out = style.table(&header, rows, &[1, 2, 3, 4, 6, 7]);
    let left = report.structures.len().saturating_sub(top);
    if left > 0 {
        out.push_str(&format!(
            "  ... and {left} more (-n {})\n",
            report.structures.len()
        ));
    }
    out
}

fn structure_row(s: &StructureMetrics) -> Vec<String> {
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), percent);
    vec![
        strip_control_characters(&s.name),
        format!(
            "{}{}",
            if s.estimated { "~" } else { "" },
            count(s.accesses())
        ),
        percent(s.share),
        number(s.fetch_share),
        bytes(s.size),
        first_touchers(&s.first_touch, s.pages),
        number(s.exclusivity),
        number(s.first_touch_accuracy),
    ]
}

/// `0`, `0 (83 %)`, `0-63`: the thread that placed most, or the threads that share it.
fn first_touchers(touched: &[(ThreadIx, u64)], pages: u64) -> String {
    match touched {
        [] => "-".to_owned(),
        [(thread, _)] => thread.to_string(),
        [(thread, most), ..] if *most * 2 > pages => {
            format!(
                "{thread} ({:.0} %)",
                *most as f64 * 100.0 / pages.max(1) as f64
            )
        }
        many => {
            let mut threads: Vec<u32> = many.iter().map(|t| t.0 .0).collect();
            threads.sort_unstable();
            ranges(&threads)
        }
    }
}

/// `0-3,7`, cut after three runs.
fn ranges(sorted: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &t in sorted {
        match runs.last_mut() {
            Some(run) if run.1 + 1 == t => run.1 = t,
            _ => runs.push((t, t)),
        }
    }
    let text = |&(a, b): &(u32, u32)| {
        if a == b {
            a.to_string()
        } else {
            format!("{a}-{b}")
        }
    };
    let shown: Vec<String> = runs.iter().take(3).map(text).collect();
    let more = if runs.len() > 3 { ",..." } else { "" };
    format!("{}{more}", shown.join(","))
}

fn lines(report: &MetricsReport, top: usize, style: TerminalStyle) -> String {
    let rows = report.lines.iter().take(top).map(|l| {
        let place = match l.line {
            0 => strip_control_characters(&l.function),
            line => format!(
                "{}:{line} ({})",
                strip_control_characters(&l.file),
                strip_control_characters(&l.function)
            ),
        };
        vec![
            percent(l.share),
            count(l.reads),
            count(l.writes),
            strip_control_characters(&l.structure),
            place,
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return String::new();
    }
    style.table(
        &["share", "reads", "writes", "structure", "line"],
        rows,
        &[0, 1, 2],
    )
}
