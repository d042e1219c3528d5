//! What of a run could not be seen, for its profile.
use super::engine::CollectorEngine;
use super::process_rows::OWN_ROWS as OWN_PROCESS_ROWS;
use super::sampling::SamplingScale;
use super::thread_rows::OWN_ROWS;
use hither_model::units::plural;
use hither_profile::TraceCost;
use hither_sys::wire;

/// Share of the accesses that sampling may leave out of the totals without a word.
const MOST_UNSEEN: f64 = 0.05;

/// Share of the samples that may be lost without a word: by chance alone the shares of lines vary by more.
const MOST_LOST: f64 = 0.01;

/// What could not be seen, a sentence each.
pub fn limits(engine: &CollectorEngine, scale: &SamplingScale, cost: &TraceCost) -> Vec<String> {
    let lost = engine.segment.lost();
    let told = |kind| engine.target_state.lost.contains(&kind);
    let mut found = Vec::new();
    let mut say = |when: bool, what: String| {
        if when {
            found.push(what);
        }
    };
    say(
        lost.threads > 0 || told(wire::LOST_THREADS),
        format!(
            "{} not traced: {} others ran at the same time, or had ended shortly before.",
            plural(lost.threads, "thread was", "threads were"),
            wire::MAX_THREADS - 1
        ),
    );
    let (merged, rows) = engine.target_state.threads.shared();
    say(
        rows > 0,
        format!(
            "{merged} threads are in {}: past the {OWN_ROWS}th thread or the {OWN_PROCESS_ROWS}th process of a run, those that follow one another at the same work are counted as one.",
            plural(rows as u64, "row", "rows")
        ),
    );
    say(
        lost.processes > 0 || told(wire::LOST_PROCESSES),
        format!(
            "{} past the {}th of the run {} not traced.",
            plural(lost.processes, "process", "processes"),
            wire::MAX_PROCESSES - 1,
            were(lost.processes)
        ),
    );
    say(
        told(wire::LOST_CHILD_32BIT),
        "A 32-bit child process was not traced.".into(),
    );
    say(
        told(wire::LOST_VIRTUAL_MACHINE),
        "A virtual machine with a compiler, Java's or Erlang's, that the program started was not traced.".into(),
    );
    say(
        told(wire::LOST_RIGHTS),
        "A process gave up rights, as by becoming another user, and was not traced from then on, nor what it executed: start hither itself as that user (runuser -u USER -- hither trace ...).".into(),
    );
    say(
        lost.pages > 0 || lost.blocks > 0 || told(wire::LOST_MEMORY),
        format!(
            "Accesses to some pages were not counted: {} and {} past the tracer's limits.",
            plural(lost.pages, "page", "pages"),
            plural(lost.blocks, "page-count block", "page-count blocks")
        ),
    );
    say(
        lost.chunks > 0,
        format!(
            "{} of shared memory past the tracer's limit {} treated as private.",
            plural(lost.chunks, "chunk", "chunks"),
            were(lost.chunks)
        ),
    );
    say(
        lost.users > 0,
        format!(
            "Communication is too low: {} no more users of a line could be remembered; trace with shorter slices.",
            plural(lost.users, "time", "times")
        ),
    );
    say(
        lost.displaced_users > 0,
        format!(
            "Some lines had more than {0} users in a slice: accesses to such a line count as communication with the {0} that came to it last.",
            wire::LINE_USERS
        ),
    );
    say(
        lost.sites > 0,
        format!(
            "{} in the code past the tracer's limit {} no source line.",
            plural(lost.sites, "place", "places"),
            if lost.sites == 1 { "has" } else { "have" }
        ),
    );
    say(
        told(wire::LOST_OBJECTS),
        "A process has more data structures than the tracer tells apart: the last ones found have no counts.".into(),
    );
    say(
        cost.lost_events > 0,
        format!(
            "{} lost: some pages and data structures have no name.",
            plural(
                cost.lost_events,
                "event (mapping, allocation) was",
                "events (mappings, allocations) were"
            )
        ),
    );
    let samples = engine.samples.taken.saturating_add(cost.lost_samples);
    say(
        cost.lost_samples as f64 > samples as f64 * MOST_LOST,
        format!(
            "{} of {} lost: source lines and estimated counts of data structures are less sure.",
            cost.lost_samples,
            plural(samples, "sample was", "samples were")
        ),
    );
    say(scale.unseen > MOST_UNSEEN, format!(
        "Totals are too low: {:.0} % of the accesses were made by threads that slept or had ended whenever a slice was traced; trace without --sample.", scale.unseen * 100.0));
    let reused = engine.target_state.regions.ended.reused;
    say(reused > 0, format!(
        "{} together with an earlier one of the same size and thread that had ended: more than 1024 or 256 MiB had.", plural(reused, "mapping counts", "mappings count")));
    let (wall, slices) = (engine.timer.wall_slices, engine.slices.rows.len());
    say(wall > 0, format!(
        "{wall} of {} as long as the wall clock says: the program's memory may not be read, so its instructions were not known meanwhile.", plural(slices as u64, "slice lasts", "slices last")));
    let refused = engine.target_state.regions.budget.refused;
    say(refused > 0, format!(
        "{} of mappings and heap blocks {} not kept, which would have taken too much memory: pages there have another name or none.", plural(refused, "report", "reports"), were(refused)));
    let (pages, comm) = (engine.pages.factor(), engine.comm.factor());
    say(pages > 1, format!(
        "Page usage over time is kept for groups of {pages} slices, to stay within the budgets of size and collector time; totals are exact."));
    say(comm > 1, format!(
        "Communication over time is kept for groups of {comm} slices, to stay within the size budget; totals and the metrics of each slice are exact."));
    found
}

fn were(n: impl Into<u64>) -> &'static str {
    match n.into() {
        1 => "was",
        _ => "were",
    }
}
