//! Whether placing pages would help (OPT 5.4).
use super::{of_traffic, percent, Answer, VerdictInput};
use crate::metrics::memory_traffic::{PageTraffic, TrafficAccuracy};
use crate::metrics::thresholds::{ACC_RIGHT, E_HIGH, MIN_LOCAL_GAIN, TIME_MIN};
use crate::units;

pub(super) fn data_mapping(e: &VerdictInput) -> (Answer, String) {
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
    if e.cache_bytes > 0 && e.footprint <= e.cache_bytes {
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
        let why = format!(
            "Data: all nodes use the same pages (E_app{} {:.0} %, threshold {:.0} %), so no \
             node is right for them; spread them if one memory is overloaded.",
            of_traffic(e.traffic),
            pages.best * 100.0,
            E_HIGH * 100.0
        );
        return (Answer::No, why);
    }
    first_touch_answer(e, &pages, &first)
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
             node; moving pages gains nothing."
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
