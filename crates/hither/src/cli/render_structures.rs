//! The table of data structures of `hither stat`.
use super::style::{bytes, count, percent, ranges, strip_control_characters, TerminalStyle};
use hither_model::metrics::metrics_report::MetricsReport;
use hither_model::metrics::structure_rows::{
    group_structures, mean_by_accesses, ListedStructure, StructureGroup,
};
use hither_model::metrics::structures::StructureMetrics;
use hither_profile::{ObjectKind, ThreadIx};

/// The structures with most traffic. Those of one declaration are one row, in however many processes.
pub fn table(report: &MetricsReport, top: usize, style: TerminalStyle) -> String {
    let found = merge(&report.structures);
    let rows: Vec<_> = found.iter().take(top).map(structure_row).collect();
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
    let left = found.len().saturating_sub(top);
    if left > 0 {
        out.push_str(&format!("  ... and {left} more (-n {})\n", found.len()));
    }
    out
}

/// As the page has them; those with the largest share of accesses or fetches first.
fn merge(all: &[StructureMetrics]) -> Vec<StructureMetrics> {
    let listed: Vec<_> = all.iter().map(ListedStructure::from).collect();
    let groups = group_structures(&listed).into_iter();
    let mut rows: Vec<_> = groups.map(|group| merged(all, &group)).collect();
    let larger = |s: &StructureMetrics| s.fetch_share.unwrap_or(0.0).max(s.share);
    rows.sort_by(|a, b| larger(b).total_cmp(&larger(a)));
    rows
}

fn merged(all: &[StructureMetrics], group: &StructureGroup) -> StructureMetrics {
    let members = group.members.iter().map(|&at| &all[at]);
    let mean = |of: fn(&StructureMetrics) -> Option<f64>| {
        mean_by_accesses(members.clone().map(|s| (of(s), s.accesses())))
    };
    let sum = members.clone().cloned().reduce(|mut sum, s| {
        add(&mut sum, &s);
        sum
    });
    let sum = sum.unwrap_or_default();
    let processes = group.processes.len();
    let name = match processes > 1 && sum.name == group.name {
        true => format!("{} ({processes} processes)", group.name),
        false => group.name.clone(),
    };
    StructureMetrics {
        name,
        exclusivity: mean(|s| s.exclusivity),
        first_touch_accuracy: mean(|s| s.first_touch_accuracy),
        ..sum
    }
}

fn add(sum: &mut StructureMetrics, s: &StructureMetrics) {
    // A profile may have been made by anybody.
    sum.reads = sum.reads.saturating_add(s.reads);
    sum.writes = sum.writes.saturating_add(s.writes);
    sum.share += s.share;
    sum.fetch_share = sum.fetch_share.zip(s.fetch_share).map(|(a, b)| a + b);
    sum.size = sum.size.saturating_add(s.size);
    sum.pages += s.pages;
    sum.estimated |= s.estimated;
    for &(thread, pages) in &s.first_touch {
        match sum.first_touch.iter_mut().find(|t| t.0 == thread) {
            Some(known) => known.1 += pages,
            None => sum.first_touch.push((thread, pages)),
        }
    }
    sum.first_touch.sort_by_key(|t| std::cmp::Reverse(t.1));
}

fn structure_row(s: &StructureMetrics) -> Vec<String> {
    let number = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), percent);
    let shared = match s.kind {
        ObjectKind::Shared => " (shared)",
        _ => "",
    };
    vec![
        strip_control_characters(&s.name) + shared,
        format!(
            "{}{}",
            if s.estimated { "~" } else { "" },
            count(s.accesses())
        ),
        percent(s.share),
        number(s.fetch_share),
        match s.size {
            0 => "-".to_owned(),
            size => bytes(size),
        },
        first_touchers(&s.first_touch, s.pages),
        number(s.exclusivity),
        number(s.first_touch_accuracy),
    ]
}

/// Characters of a list of threads that leave room for names in a line of 80.
const LONGEST_LIST: usize = 12;

/// `0`, `0 (83 %)`, `0-63`, `225 threads`: the thread that placed most, or the threads that share it.
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
            let list = ranges(&threads);
            if list.len() > LONGEST_LIST {
                format!("{} threads", threads.len())
            } else {
                list
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, process: u32, reads: u64, exclusivity: f64) -> StructureMetrics {
        StructureMetrics {
            name: name.to_owned(),
            process,
            reads,
            share: reads as f64 / 100.0,
            size: 4096,
            pages: 1,
            exclusivity: Some(exclusivity),
            first_touch: vec![(ThreadIx(process), 1)],
            ..StructureMetrics::default()
        }
    }

    /// mafft: 227 threads of 220 processes; names were two letters wide.
    #[test]
    fn many_first_touchers_are_a_number() {
        let by = |threads: &[u32]| {
            let all: Vec<_> = threads.iter().map(|t| (ThreadIx(*t), 1)).collect();
            first_touchers(&all, all.len() as u64)
        };
        assert_eq!(by(&[7, 0, 1, 4, 5]), "0-1,4-5,7");
        assert_eq!(by(&[209, 210, 211, 212]), "209-212");
        let many: Vec<u32> = (0..213).chain([214]).chain(217..228).collect();
        assert_eq!(by(&many), "225 threads");
    }

    #[test]
    fn what_several_processes_have_is_one_row() {
        let all = [
            of("one", 0, 40, 1.0),
            of("each", 1, 30, 0.5),
            of("each", 2, 20, 1.0),
            of("small", 2, 10, 1.0),
        ];
        let rows = merge(&all);
        let found: Vec<_> = rows.iter().map(|r| (&*r.name, r.reads, r.size)).collect();
        let expected = [
            ("each (2 processes)", 50, 8192),
            ("one", 40, 4096),
            ("small", 10, 4096),
        ];
        assert_eq!(found, expected);
        assert_eq!(rows[0].exclusivity, Some(0.7));
        assert_eq!(first_touchers(&rows[0].first_touch, rows[0].pages), "1-2");
    }

    #[test]
    fn stacks_are_one_row_where_none_stands_out() {
        let stack = |thread: u32, reads| StructureMetrics {
            kind: ObjectKind::Stack,
            ..of(&format!("stack of thread {thread}"), 0, reads, 1.0)
        };
        let names = |reads: [u64; 3]| {
            let stacks = reads.iter().zip(0..).map(|(n, thread)| stack(thread, *n));
            let all: Vec<_> = stacks.chain([of("one", 0, 25, 1.0)]).collect();
            let rows = merge(&all);
            let row = |r: StructureMetrics| (r.name, r.reads);
            rows.into_iter().map(row).collect::<Vec<_>>()
        };
        let row = |name: &str, reads| (name.to_owned(), reads);
        assert_eq!(names([30, 20, 10]), [row("3 stacks", 60), row("one", 25)]);
        let mut sum = stack(0, 1);
        add(&mut sum, &stack(1, 1));
        assert_eq!(sum.first_touch, [(ThreadIx(0), 2)]);
        let apart = [
            row("stack of thread 0", 60),
            row("one", 25),
            row("stack of thread 1", 10),
            row("stack of thread 2", 5),
        ];
        assert_eq!(names([60, 10, 5]), apart);
    }
}
