//! `hither stat --slices`: the run over time.
use super::style::{count, percent, three, Style};
use crate::metrics::report::SliceRow;

/// Lines of the terminal left for the header and the prompt.
const MARGIN: usize = 4;

/// A table that fits the height of the terminal: neighbouring slices are put together.
pub fn render(slices: &[SliceRow], style: Style) -> String {
    if slices.is_empty() {
        return "no slices were recorded\n".to_owned();
    }
    let lines = style.height.saturating_sub(MARGIN).max(1);
    let per_line = slices.len().div_ceil(lines);
    let rows = slices.chunks(per_line).map(row).collect();
    let header = [
        "slice", "time (s)", "C_A", "C_H", "E_app", "moves", "accesses", "barriers", "OpenMP",
        "regions", "MPI",
    ];
    let mut out = style.table(&header, rows, &(0..header.len()).collect::<Vec<_>>());
    if per_line > 1 {
        out.push_str(&format!(
            "each line is {per_line} slices: means of C_A, C_H and E_app, sums of the rest; \
             all of them with --csv or --json\n"
        ));
    }
    out
}

fn row(slices: &[SliceRow]) -> Vec<String> {
    let traced: Vec<&SliceRow> = slices.iter().filter(|s| s.traced).collect();
    let mean = |value: fn(&SliceRow) -> f64| match traced.len() {
        0 => "-".to_owned(),
        n => three(traced.iter().map(|s| value(s)).sum::<f64>() / n as f64),
    };
    let exclusive: Vec<f64> = slices.iter().filter_map(|s| s.exclusivity).collect();
    let moves: Vec<u64> = slices.iter().filter_map(|s| s.migrations).collect();
    let known = |empty: bool, text: String| if empty { "-".to_owned() } else { text };
    let sync = |kind: usize| count(slices.iter().map(|s| s.sync[kind]).sum());
    vec![
        slices[0].slice.to_string(),
        format!("{:.2}", slices[0].start_seconds),
        mean(|s| s.amount),
        mean(|s| s.heterogeneity),
        known(
            exclusive.is_empty(),
            percent(exclusive.iter().sum::<f64>() / exclusive.len() as f64),
        ),
        known(moves.is_empty(), count(moves.iter().sum())),
        count(slices.iter().map(|s| s.accesses).sum()),
        sync(0),
        sync(1),
        sync(2),
        sync(3),
    ]
}

/// Every slice, one line each; empty cells where nothing was recorded.
pub fn csv(slices: &[SliceRow]) -> String {
    let mut out = String::from(
        "slice,start_seconds,traced,threads,accesses,amount,heterogeneity,exclusivity,\
         migrations,pthread_barriers,openmp_barriers,openmp_regions,mpi_barriers\n",
    );
    for s in slices {
        let exclusivity = s.exclusivity.map_or_else(String::new, |v| v.to_string());
        let migrations = s.migrations.map_or_else(String::new, |v| v.to_string());
        let [pthread, openmp, regions, mpi] = s.sync;
        out.push_str(&format!(
            "{},{},{},{},{},{},{},{exclusivity},{migrations},{pthread},{openmp},{regions},{mpi}\n",
            s.slice, s.start_seconds, s.traced, s.threads, s.accesses, s.amount, s.heterogeneity,
        ));
    }
    out
}
