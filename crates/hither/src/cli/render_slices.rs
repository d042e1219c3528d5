//! `hither stat --slices`: the run over time.
use super::style::{count, three_digits, TerminalStyle};
use hither_model::metrics::metrics_report::SliceMetrics;

/// Lines of the terminal left for the header and the prompt.
const MARGIN: usize = 4;
/// Kinds of synchronisation points, as in a profile's slices.
const SYNC: [&str; 4] = ["barriers", "OpenMP", "regions", "MPI"];

/// A table that fits the height of the terminal: neighbouring slices are put together.
pub fn render(slices: &[SliceMetrics], style: TerminalStyle) -> String {
    if slices.is_empty() {
        return "no slices were recorded\n".to_owned();
    }
    let lines = style.height.saturating_sub(MARGIN).max(1);
    let per_line = slices.len().div_ceil(lines);
    // Most programs synchronise in one way: only columns with something in them.
    let sync: Vec<usize> = (0..SYNC.len())
        .filter(|&kind| slices.iter().any(|s| s.sync[kind] > 0))
        .collect();
    let rows = slices.chunks(per_line).map(|s| row(s, &sync)).collect();
    let mut header = vec![
        "slice", "time (s)", "C_A", "C_H", "E_app %", "moves", "accesses",
    ];
    header.extend(sync.iter().map(|&kind| SYNC[kind]));
    let mut out = style.table(&header, rows, &(0..header.len()).collect::<Vec<_>>());
    if per_line > 1 {
        let note = format!(
            "Each line is {per_line} slices: means of C_A, C_H and E_app, sums of the rest. \
             All slices: --csv or --json."
        );
        out.push_str(&style.wrap("", &note, 0));
    }
    out
}

fn row(slices: &[SliceMetrics], sync: &[usize]) -> Vec<String> {
    let traced: Vec<&SliceMetrics> = slices.iter().filter(|s| s.traced).collect();
    let mean = |values: Vec<f64>| match values.len() {
        0 => "-".to_owned(),
        n => three_digits(values.iter().sum::<f64>() / n as f64),
    };
    let moves: Vec<u64> = slices.iter().filter_map(|s| s.migrations).collect();
    let mut out = vec![
        slices[0].slice.to_string(),
        format!("{:.2}", slices[0].start_seconds),
        mean(traced.iter().map(|s| s.amount).collect()),
        mean(traced.iter().map(|s| s.heterogeneity).collect()),
        mean(
            slices
                .iter()
                .filter_map(|s| s.exclusivity.map(|e| e * 100.0))
                .collect(),
        ),
        if moves.is_empty() {
            "-".to_owned()
        } else {
            count(moves.iter().sum())
        },
        count(slices.iter().map(|s| s.accesses).sum()),
    ];
    let sums = sync
        .iter()
        .map(|&kind| slices.iter().map(|s| s.sync[kind]).sum());
    out.extend(sums.map(count));
    out
}

/// Every slice, one line each; empty cells where nothing was recorded.
pub fn csv(slices: &[SliceMetrics]) -> String {
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
