//! Says a thing once. Several findings may be about one structure and end in one repair, and one command
//! deals out the pages of several structures: the worst finding gives it, the others name that one.
use super::fix_snippets::interleave_command;
use super::FindingContext;
use hither_profile::{Finding, ObjectIx, SuggestedFix};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Structures named that a command deals out as well.
const NAMED: usize = 3;

/// `found` is in the order in which it is shown.
pub fn say_once(case: &FindingContext, found: &mut [Finding]) {
    join_interleaved(case, found);
    let mut given: HashMap<String, usize> = HashMap::new();
    let mut said: HashSet<(Option<ObjectIx>, String)> = HashSet::new();
    for (at, finding) in found.iter_mut().enumerate() {
        refer_to_given(finding, at + 1, &mut given);
        let object = finding.object;
        // It has to have some.
        let mut left = finding.evidence.len();
        finding.evidence.retain(|text| {
            let new = said.insert((object, text.clone()));
            let keep = new || left == 1;
            left -= usize::from(!keep);
            keep
        });
    }
}

/// A fix is given with the first finding that needs it.
fn refer_to_given(finding: &mut Finding, number: usize, given: &mut HashMap<String, usize>) {
    let mut first = BTreeSet::new();
    let mut repeated = 0;
    for fix in &mut finding.fixes {
        let words = match fix.copy.as_str() {
            "" => &fix.what,
            copy => copy,
        };
        let at = *given.entry(words.to_owned()).or_insert(number);
        if at < number {
            first.insert(at);
            repeated += 1;
            let what = fix.what.trim_end_matches('.');
            fix.what = format!("{what} (see finding {at}).");
            fix.copy.clear();
        }
    }
    if repeated > 0 && repeated == finding.fixes.len() {
        let numbers: Vec<String> = first.iter().map(usize::to_string).collect();
        let word = match numbers.len() {
            1 => "finding",
            _ => "findings",
        };
        finding.fixes = vec![SuggestedFix {
            what: format!(
                "What is proposed with {word} {} goes for this too.",
                listed(&numbers)
            ),
            copy: String::new(),
        }];
    }
}

/// A placement that deals out one structure leaves the others as they are: they are in one command.
fn join_interleaved(case: &FindingContext, found: &mut [Finding]) {
    let mut places = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for (at, finding) in found.iter().enumerate() {
        let structures = &case.analysis.report.structures;
        let structure = structures.iter().find(|s| Some(s.object) == finding.object);
        let Some(name) = structure.map(|s| &s.name) else {
            continue;
        };
        let alone = interleave_command(case, [name.as_str()]);
        let fix = finding.fixes.iter().position(|fix| fix.copy == alone);
        places.extend(fix.map(|fix| (at, fix)));
        if fix.is_some() && !names.contains(name) {
            names.push(name.clone());
        }
    }
    let others = names.get(1..).unwrap_or_default();
    if others.is_empty() {
        return;
    }
    let joint = interleave_command(case, names.iter().map(String::as_str));
    for (number, &(finding, fix)) in places.iter().enumerate() {
        let fix = &mut found[finding].fixes[fix];
        fix.copy.clone_from(&joint);
        if number == 0 {
            let mut shown: Vec<String> = others.iter().take(NAMED).cloned().collect();
            if others.len() > NAMED {
                shown.push(format!("{} more", others.len() - NAMED));
            }
            fix.what += &format!(" The command does so for {} as well.", listed(&shown));
        }
    }
}

/// `a, b and c`
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
