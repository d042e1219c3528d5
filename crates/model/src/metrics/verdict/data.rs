//! Whether placing pages would help (OPT 5.4).
use super::{of_traffic, percent, Answer, VerdictInput};
use crate::metrics::memory_traffic::{PageTraffic, TrafficAccuracy};
use crate::metrics::thresholds::{ACC_RIGHT, ALIKE, E_HIGH, MIN_LOCAL_GAIN, TIME_MIN};
use crate::units;

pub(super) fn data_mapping(e: &VerdictInput) -> (Answer, String) {
    let (answer, mut why) = nearer_pages(e);
    if let Some(i) = e.overloaded_memory().filter(|_| answer == Answer::No) {
        why.push_str(&format!(
            " But the memory of node {} serves {} % of the {}, {:.1} times its share: others could serve {} % \
             without making any remote (`hither map --data balanced`).",
            i.busiest,
            percent(i.most()),
            e.traffic,
            i.times_its_share(),
            percent(i.movable)
        ));
    }
    (answer, why)
}

/// Whether pages would be nearer to those who use them.
fn nearer_pages(e: &VerdictInput) -> (Answer, String) {
    let Some(pages) = e.page_traffic else {
        return (Answer::No, "Data: no page use was recorded.".to_owned());
    };
    if e.nodes < 2 {
        return (
            Answer::No,
            "Data: with one node every page is local.".to_owned(),
        );
    }
    if e.pages < e.nodes {
        let why = format!(
            "Data: {} pages are too few to spread over {} nodes.",
            e.pages, e.nodes
        );
        return (Answer::No, why);
    }
    if e.fits_in_caches() {
        let why = format!(
            "Data: all of it, {}, fits in the caches, {} (eq. 7); pages matter little.",
            units::show_bytes(e.footprint),
            units::show_bytes(e.cache_bytes)
        );
        return (Answer::No, why);
    }
    let Some(first) = pages.first_touch else {
        return (Answer::No, "Data: no first touch was recorded.".to_owned());
    };
    if pages.best < E_HIGH {
        let why = shared_pages_reason(e, &pages);
        return (Answer::No, why);
    }
    first_touch_answer(e, &pages, &first)
}

/// Of a run whose E_app is below what it takes.
fn shared_pages_reason(e: &VerdictInput, pages: &PageTraffic) -> String {
    let by_chance = 1.0 / e.nodes as f64;
    let alike = pages.best <= by_chance + ALIKE * (1.0 - by_chance);
    let use_them = if alike {
        "all nodes use the same pages"
    } else {
        "several nodes use too many of the pages alike"
    };
    // Whether one is, the next sentence says.
    let spread = match e.overloaded_memory() {
        Some(_) => "",
        None => "; spread them if one memory is overloaded",
    };
    format!(
        "Data: {use_them} (E_app{} {:.0} %, threshold {:.0} %), so no node is right for them{spread}.",
        of_traffic(e.traffic),
        pages.best * 100.0,
        E_HIGH * 100.0
    )
}

/// Of pages that belong to one node each.
fn first_touch_answer(
    e: &VerdictInput,
    pages: &PageTraffic,
    first: &TrafficAccuracy,
) -> (Answer, String) {
    let (unit, right, most) = (e.traffic, first.app * 100.0, pages.lasting * 100.0);
    let gains = first.app < ACC_RIGHT && pages.lasting - first.local >= MIN_LOCAL_GAIN;
    if !gains && !e.saw_use_of_pages() {
        let why =
            "Data: cannot tell, most page faults that were seen are the first of their page and \
                   say nothing of who uses it later; observe it for longer, or trace it.";
        return (Answer::Unknown, why.to_owned());
    }
    if first.app >= ACC_RIGHT {
        let why = format!(
            "Data: {right:.0} % of {unit} go to pages that first touch puts on the right \
             node; moving pages makes hardly more of them local."
        );
        return (Answer::No, why);
    }
    if pages.lasting < E_HIGH {
        let why = format!(
            "Data: the node that uses a page most (E_app{} {:.0} %) is another one at another time; with the one of \
             before only {:.0} % would be local, so no node is right for them.",
            of_traffic(e.traffic),
            pages.best * 100.0,
            pages.lasting * 100.0
        );
        return (Answer::No, why);
    }
    if !gains {
        let why = format!(
            "Data: first touch makes {:.0} % of {unit} local; with every page on its best \
             node it would be {most:.0} %, which is not worth moving them.",
            first.local * 100.0
        );
        return (Answer::No, why);
    }
    if !pages.belongs() {
        let why = format!(
            "Data: pages belong to no node, one of them makes most of all {unit}, and so of those to nearly every \
             page: E_app is {:.0} %, and {:.0} % if all nodes used every page as much as they work.",
            pages.best * 100.0,
            pages.by_work * 100.0
        );
        return (Answer::No, why);
    }
    let near = e
        .fetches
        .map(|f| f.all as f64 * (pages.lasting - first.local));
    if let Some(time) = near
        .and_then(|near| e.time_of(near))
        .filter(|time| *time < TIME_MIN)
    {
        let why = format!(
            "Data: first touch makes {:.0} % of {unit} local; with every page on its best node it would be {most:.0} %, \
             but there are so few that it is at most about {} % of the threads' time.",
            first.local * 100.0,
            percent(time)
        );
        return (Answer::No, why);
    }
    let why = format!(
        "Data: most pages are used mainly by one node (exclusivity E_app{} {:.0} %), but with first touch only \
         {right:.0} % of {unit} go to pages on that node.",
        of_traffic(unit),
        pages.best * 100.0
    );
    (Answer::Yes, why)
}
