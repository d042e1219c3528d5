//! Code and command lines to copy for a fix, in the words of the program: its variables,
//! files and language.
use super::common::structure_label;
use super::FindingContext;
use crate::metrics::structures::StructureMetrics;
use hither_profile::{file_name, shell_quote, strip_control_characters, ObjectKind, SuggestedFix};

/// Where OpenMP counts in [`hither_profile::Slice::sync`]: barriers and parallel regions.
const OPENMP: [usize; 2] = [1, 2];
/// Ends of the names of Fortran sources.
const FORTRAN: [&str; 7] = [".f", ".f77", ".f90", ".f95", ".f03", ".f08", ".for"];

/// Does the program use OpenMP?
pub fn uses_openmp(case: &FindingContext) -> bool {
    let used = |at: usize| case.profile.slices.iter().any(|s| s.sync[at] > 0);
    OPENMP.into_iter().any(used)
}

/// The structure in code: its name if that is a variable or a member of one, `(*a)->x`, else `data`.
pub fn variable_name(structure: &StructureMetrics) -> &str {
    let name = &structure.name;
    let object = match name.strip_prefix("(*").and_then(|n| n.split_once(')')) {
        Some((pointer, members)) => members.strip_prefix("->").filter(|_| is_word(pointer)),
        None => Some(name.as_str()),
    };
    let is_path = |path: &str| path.replace("->", ".").split('.').all(is_word);
    if object.is_some_and(is_path) && name.len() <= 60 {
        name
    } else {
        "data"
    }
}

fn is_word(text: &str) -> bool {
    let start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(start) && text.chars().all(|c| start(c) || c.is_ascii_digit())
}

/// `present, allocated at ondes.c:54`
pub fn describe_allocation(structure: &StructureMetrics) -> String {
    let file = printable_basename(&structure.file);
    let (name, line) = (variable_name(structure), structure.line);
    match structure.kind {
        _ if file.is_empty() || line == 0 => name.to_owned(),
        ObjectKind::Static | ObjectKind::ThreadLocal => {
            format!("{name}, declared at {file}:{line}")
        }
        _ => format!("{name}, allocated at {file}:{line}"),
    }
}

/// A loop of OpenMP over a structure that begins with `comment`.
pub fn parallel_loop(
    structure: &StructureMetrics,
    comment: &str,
    schedule: &str,
    body: &str,
) -> String {
    if is_fortran(structure) {
        return format!(
            "! {comment}\n!$omp parallel do schedule({schedule})\ndo i = 1, n\n  {body}\nend do"
        );
    }
    format!(
        "// {comment}\n#pragma omp parallel for schedule({schedule})\n\
         for (size_t i = 0; i < n; i++)\n  {body}"
    )
}

/// Declared, allocated or used in Fortran.
pub fn is_fortran(structure: &StructureMetrics) -> bool {
    let file = structure.file.to_ascii_lowercase();
    FORTRAN.iter().any(|end| file.ends_with(end))
}

/// Spread one structure's pages, without a change of the program.
pub fn interleave_fix(
    case: &FindingContext,
    structure: &StructureMetrics,
    what: &str,
) -> SuggestedFix {
    SuggestedFix {
        what: what.to_owned(),
        copy: interleave_command(case, [structure.name.as_str()]),
    }
}

/// A command that deals out the pages of these structures.
pub fn interleave_command<'a>(
    case: &FindingContext,
    names: impl IntoIterator<Item = &'a str>,
) -> String {
    let commands = &case.commands;
    let structures = names
        .into_iter()
        .map(|name| format!(" --structure {}=interleave", shell_quote(name)));
    format!(
        "hither map {profile}{structures} -o {placement}\n\
         hither run -p {placement} -- {program}",
        profile = commands.profile,
        structures = structures.collect::<String>(),
        placement = commands.placement,
        program = commands.program
    )
}

/// Let hither place threads and pages, which it does not where the verdict is that nothing is gained.
pub fn hither_run_fix(case: &FindingContext, what: &str) -> Option<SuggestedFix> {
    if !case.residence.from_placement && !case.analysis.report.verdict.may_gain() {
        return None;
    }
    let commands = &case.commands;
    let (profile, placement) = (&commands.profile, &commands.placement);
    let run = format!("hither run -p {placement} -- {}", commands.program);
    let copy = if case.residence.from_placement {
        run
    } else {
        format!("hither map {profile} -o {placement}\n{run}")
    };
    Some(SuggestedFix {
        what: what.to_owned(),
        copy,
    })
}

/// The source line that uses a structure most, as `is.c:41`; its name where none is known.
pub fn hottest_line(case: &FindingContext, structure: &StructureMetrics) -> String {
    let lines = super::common::hottest_lines(case, structure.object);
    match lines.first() {
        Some(line) => format!("{}:{}", printable_basename(&line.file), line.line),
        None => structure_label(structure),
    }
}

/// The last part of a path, on one line whatever the program calls its files.
fn printable_basename(path: &str) -> String {
    strip_control_characters(file_name(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_written_as_code() {
        for (name, expected) in [
            ("grid", "grid"),
            ("(*A)->list_of_vals", "(*A)->list_of_vals"),
            ("mesh.x", "mesh.x"),
            ("a->b.c", "a->b.c"),
            ("x[i]", "data"),
            ("generate.cpp:98 (main)", "data"),
            ("blocks of libm.so.6", "data"),
            ("(*A)", "data"),
            ("a->", "data"),
            ("->a", "data"),
            ("/dev/shm/a", "data"),
            ("1a", "data"),
        ] {
            let structure = StructureMetrics {
                name: name.to_owned(),
                ..StructureMetrics::default()
            };
            assert_eq!(variable_name(&structure), expected);
        }
    }
}
