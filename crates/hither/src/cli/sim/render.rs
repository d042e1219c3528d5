//! The table of `hither sim` on the terminal.
use hither_model::simulate::replay_input::page_homes::PageHomeRule;
use hither_model::units::plural;
use hither_profile::{PlacementComparison, PredictedPlacement, RatioEstimate};

use super::args::BreakdownTable;
use super::render_by;
use crate::app::policy_pair::ThreadPolicyArg;
use crate::app::study::verdict::is_sure;
use crate::cli::style::{
    count, percent, shell_line, strip_control_characters, three_digits, TerminalStyle,
};

/// All of it; `file` is the profile as it was named.
pub fn render(
    forecast: &PlacementComparison,
    by: &[BreakdownTable],
    style: TerminalStyle,
) -> String {
    let mut out = style.wrap("", &head(forecast), 2);
    let (first, others) = columns_that_fit(forecast, style);
    out += &table_of(&first, forecast, style);
    if !others.is_empty() {
        out += &table_of(&others, forecast, style);
    }
    let verdict = style.wrap("Verdict: ", &strip_control_characters(&forecast.verdict), 2);
    out += &format!("{}\n", style.bold(verdict.trim_end()));
    for one in by {
        out += &render_by::render(forecast, *one, style);
    }
    for note in notes(forecast, style) {
        out += &style.wrap("  - ", &strip_control_characters(&note), 4);
    }
    out
}

fn head(forecast: &PlacementComparison) -> String {
    let sample = &forecast.sample;
    let windows = plural(sample.windows, "window", "windows");
    let of = match sample.windows == sample.windows_recorded {
        true => String::new(),
        false => format!(" of {}", sample.windows_recorded),
    };
    format!(
        "{} on {}: {windows}{of}, {} accesses, of which {} warm the caches",
        strip_control_characters(&forecast.source.file),
        strip_control_characters(&forecast.title),
        count(sample.accesses),
        percent(sample.warm_up),
    )
}

/// A column: its head, its cells, and how much it is missed in the first table where there is no room: the
/// largest goes first.
struct TableColumn {
    head: String,
    /// What the legend says of a ratio; empty for what is no ratio or needs no word.
    means: &'static str,
    cell: fn(&PredictedPlacement) -> String,
    spare: u32,
}

/// All columns.
fn columns(forecast: &PlacementComparison, style: TerminalStyle) -> Vec<TableColumn> {
    let last = forecast.levels.last().map_or("LLC", String::as_str);
    let column = |head: &str, means, spare, cell| TableColumn {
        head: head.to_owned(),
        means,
        cell,
        spare,
    };
    vec![
        column("time", "time", 0, |p| value(p.relative.time)),
        column(if style.unicode { "\u{b1}" } else { "+-" }, "", 0, |p| {
            half(p.relative.time)
        }),
        column("IPC", "", 6, |p| format!("{:.2}", p.amounts.ipc)),
        column(
            &format!("{} MPKI", strip_control_characters(last)),
            "",
            1,
            |p| {
                p.amounts
                    .levels
                    .last()
                    .map_or("-".to_owned(), |level| three_digits(level.mpki))
            },
        ),
        column("inval.", "inval. (copies that writes took away)", 5, |p| {
            value(p.relative.invalidations)
        }),
        column("transf.", "transf. (lines from cache to cache)", 4, |p| {
            value(p.relative.transfers)
        }),
        column("links", "links (bytes)", 0, |p| {
            value(p.relative.link_bytes)
        }),
        column("DRAM", "DRAM (lines)", 0, |p| value(p.relative.dram)),
        column("remote", "", 0, |p| match p.amounts.dram() {
            all if all > 0.0 => format!("{:.0} %", p.amounts.remote_dram() / all * 100.0),
            _ => "-".to_owned(),
        }),
        column("reads", "reads (time from issue to data)", 2, |p| {
            value(p.relative.read_time)
        }),
        column("energy", "energy", 0, |p| value(p.relative.energy)),
        column("static", "its static part", 3, |p| {
            value(p.relative.static_energy)
        }),
        column("dyn.", "its dynamic part (that of events)", 3, |p| {
            value(p.relative.dynamic_energy)
        }),
    ]
}

/// What placements are called in the table; the winner is marked.
fn names(forecast: &PlacementComparison) -> Vec<String> {
    let several = forecast.placements.len() > 1;
    let name = |(at, p): (usize, &PredictedPlacement)| {
        let best = several && at == forecast.best as usize;
        format!(
            "{}{}",
            if best { '*' } else { ' ' },
            strip_control_characters(&p.name)
        )
    };
    forecast.placements.iter().enumerate().map(name).collect()
}

/// The most telling columns that fit beside one another, and the others.
fn columns_that_fit(
    forecast: &PlacementComparison,
    style: TerminalStyle,
) -> (Vec<TableColumn>, Vec<TableColumn>) {
    let columns = columns(forecast, style);
    let width = |column: &TableColumn| {
        let cells = forecast
            .placements
            .iter()
            .map(|p| (column.cell)(p).chars().count());
        cells.max().unwrap_or(0).max(column.head.chars().count()) + 2
    };
    let names = names(forecast);
    let first = names.iter().map(|n| n.chars().count()).max().unwrap_or(0) + 3;
    let fit = |most: &u32| {
        let shown = columns.iter().filter(|c| c.spare <= *most);
        first + shown.map(width).sum::<usize>() <= style.width
    };
    let largest = columns.iter().map(|c| c.spare).max().unwrap_or(0);
    let most = (0..=largest).rev().find(fit).unwrap_or(0);
    columns.into_iter().partition(|c| c.spare <= most)
}

/// The most telling columns.
pub fn table(forecast: &PlacementComparison, style: TerminalStyle) -> String {
    table_of(&columns_that_fit(forecast, style).0, forecast, style)
}

fn table_of(
    columns: &[TableColumn],
    forecast: &PlacementComparison,
    style: TerminalStyle,
) -> String {
    let mut header = vec![""];
    header.extend(columns.iter().map(|c| c.head.as_str()));
    let names = names(forecast);
    let rows = forecast.placements.iter().zip(names).map(|(p, name)| {
        let cells = columns.iter().map(|c| (c.cell)(p));
        [name].into_iter().chain(cells).collect()
    });
    let right: Vec<usize> = (1..header.len()).collect();
    let text = style.table(&header, rows.collect(), &right);
    let bold = |line: &str| match line.starts_with(" *") {
        true => style.bold(line) + "\n",
        false => format!("{line}\n"),
    };
    text.lines().map(bold).collect()
}

/// A ratio to the first; a dash where the first has nothing to compare with.
pub fn value(ratio: Option<RatioEstimate>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.3}", ratio.value))
}

fn half(ratio: Option<RatioEstimate>) -> String {
    let half = ratio.and_then(|ratio| ratio.half_width);
    half.map_or_else(|| "-".to_owned(), |half| format!("{half:.3}"))
}

/// What the numbers of [`table`] are.
pub fn legend(forecast: &PlacementComparison, style: TerminalStyle) -> String {
    legend_of(&columns_that_fit(forecast, style).0, forecast, style)
}

fn legend_of(
    columns: &[TableColumn],
    forecast: &PlacementComparison,
    style: TerminalStyle,
) -> String {
    let first = forecast.placements.first().map_or("", |p| p.name.as_str());
    let ratios: Vec<&str> = columns
        .iter()
        .map(|c| c.means)
        .filter(|means| !means.is_empty())
        .collect();
    let ratios = match ratios.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    };
    let sign = if style.unicode { "\u{b1}" } else { "+-" };
    format!(
        "Ratios to {}: {ratios}; {sign} is half of the 95 % interval of time; remote is the share of DRAM's lines that another node asked for.",
        strip_control_characters(first)
    )
}

/// What to bear in mind.
fn notes(forecast: &PlacementComparison, style: TerminalStyle) -> Vec<String> {
    let mut notes = vec![
        legend_of(&columns(forecast, style), forecast, style),
        format!(
            "Pages that a placement leaves to the system: {}.",
            forecast.pages
        ),
    ];
    for placement in forecast.placements.iter().filter(|p| p.name == "joint") {
        let data = placement
            .data_policy
            .as_deref()
            .unwrap_or(PageHomeRule::FirstTouch.name());
        notes.push(format!("joint is {}+{data}.", placement.thread_policy));
    }
    notes.extend(forecast.notes.iter().cloned());
    notes
}

/// The fastest, unless that may be chance: then the fastest of those that are surely faster than the first.
fn worth_trying(forecast: &PlacementComparison) -> Option<&PredictedPlacement> {
    let best = forecast.placements.get(forecast.best as usize)?;
    let may_be_chance = |time: RatioEstimate| time.half_width.is_some() && !is_sure(time);
    if forecast.best == 0 || !best.relative.time.is_some_and(may_be_chance) {
        return Some(best);
    }
    let gain = |time: &RatioEstimate| is_sure(*time) && time.value < 1.0;
    let faster = forecast.placements.iter();
    let faster = faster.filter_map(|p| Some((p, p.relative.time.filter(gain)?.value)));
    faster
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(p, _)| p)
}

/// What to type now.
pub fn next(forecast: &PlacementComparison, topology: Option<&str>) -> String {
    let file = forecast.source.file.as_str();
    let Some(best) = worth_trying(forecast) else {
        return shell_line(["hither", "report", file].iter());
    };
    let mut words = vec!["hither"];
    if let Some(placement) = &best.file {
        if topology.is_some() {
            return shell_line(["hither", "map", placement, "--format", "env"].iter());
        }
        words.extend(["run", "-p", placement, "--"]);
        words.extend(forecast.source.command.iter().map(String::as_str));
        return shell_line(words.iter());
    }
    // What chance does well once is nothing to keep.
    let chance = [ThreadPolicyArg::Os.name(), ThreadPolicyArg::RANDOM.name()];
    if chance.contains(&best.thread_policy.as_str()) {
        return shell_line(["hither", "report", file].iter());
    }
    words.extend(["map", file]);
    words.extend(topology.iter().flat_map(|name| ["--topology", name]));
    words.extend(["--policy", &best.thread_policy]);
    words.extend([
        "--data",
        best.data_policy.as_deref().unwrap_or("first-touch"),
    ]);
    shell_line(words.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::RelativeFigures;

    fn forecast(best: &str) -> PlacementComparison {
        let one = |name: &str| PredictedPlacement {
            name: name.to_owned(),
            thread_policy: name.to_owned(),
            relative: RelativeFigures {
                time: Some(RatioEstimate::default()),
                ..RelativeFigures::default()
            },
            ..PredictedPlacement::default()
        };
        let mut forecast = PlacementComparison {
            placements: vec![one("os"), one(best)],
            best: 1,
            ..PlacementComparison::default()
        };
        forecast.source.file = "app.hither".to_owned();
        forecast
    }

    #[test]
    fn what_chance_does_is_no_placement_to_make() {
        let check = |best, expected| assert_eq!(next(&forecast(best), None), expected);
        check("random", "hither report app.hither");
        check(
            "scatter",
            "hither map app.hither --policy scatter --data first-touch",
        );
    }

    #[test]
    fn what_may_be_chance_is_no_placement_to_make() {
        let check = |half_width, other: Option<f64>, expected| {
            let mut forecast = forecast("scatter");
            forecast.placements.push(PredictedPlacement {
                thread_policy: "compact".to_owned(),
                ..PredictedPlacement::default()
            });
            let ratio = |value, half_width| RatioEstimate { value, half_width };
            let times = [
                Some(ratio(1.0, Some(0.0))),
                Some(ratio(0.4, half_width)),
                other.map(|value| ratio(value, Some(0.1))),
            ];
            for (placement, time) in forecast.placements.iter_mut().zip(times) {
                placement.relative.time = time;
            }
            assert_eq!(next(&forecast, None), expected);
        };
        let map = |policy| format!("hither map app.hither --policy {policy} --data first-touch");
        check(Some(0.5), None, map("scatter"));
        check(Some(1.5), None, "hither report app.hither".to_owned());
        check(Some(1.5), Some(0.8), map("compact"));
        check(Some(1.5), Some(0.95), "hither report app.hither".to_owned());
        check(None, None, map("scatter"));
    }

    #[test]
    fn what_does_not_fit_is_in_a_second_table() {
        let style = TerminalStyle {
            width: 60,
            height: 40,
            colour: false,
            unicode: false,
        };
        let said = render(&forecast("scatter"), &[], style);
        let of = |head: &str| {
            let lines = said.lines();
            let at = lines.clone().position(|line| line.contains(head));
            at.unwrap_or_else(|| panic!("no {head} in {said}"))
        };
        assert!(of(" static ") > of(" energy"), "{said}");
        assert_eq!(of(" static "), of(" dyn."));
        assert_eq!(of(" static "), of(" IPC"), "in the order of one wide table");
        assert!(said.contains("inval. (copies"), "{said}");
    }

    #[test]
    fn the_legend_is_of_the_columns_that_fit() {
        let style = |width| TerminalStyle {
            width,
            height: 40,
            colour: false,
            unicode: false,
        };
        assert!(legend(&forecast("scatter"), style(100)).contains("inval."));
        let narrow = legend(&forecast("scatter"), style(60));
        assert!(
            !narrow.contains("inval.") && narrow.contains("DRAM (lines) and energy;"),
            "{narrow}"
        );
    }
}
