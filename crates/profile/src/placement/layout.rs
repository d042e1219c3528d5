//! JSON for people and `diff`: a thread, a region, a place each on a line of its own.
use super::{PlacedPhase, Placement};
use serde::Serialize;
use serde_json::{to_string, Result};

pub(super) fn placement_json(placement: &Placement) -> Result<Vec<u8>> {
    // Taken apart by name, so that a new field cannot be left out.
    let Placement {
        format,
        writer,
        source,
        machine,
        policy,
        objective,
        why,
        processes,
        threads,
        page_bytes,
        regions,
        phases,
    } = placement;
    let mut phase_texts = Vec::new();
    for one in phases {
        phase_texts.push(phase(one)?);
    }
    let fields = [
        ("format", to_string(format)?),
        ("writer", to_string(writer)?),
        ("source", to_string(source)?),
        ("machine", to_string(machine)?),
        ("policy", to_string(policy)?),
        ("objective", to_string(objective)?),
        ("why", to_string(why)?),
        ("processes", rows(processes, "    ")?),
        ("threads", rows(threads, "    ")?),
        ("page_bytes", to_string(page_bytes)?),
        ("regions", rows(regions, "    ")?),
        ("phases", lines("[", &phase_texts, "]", "    ")),
    ];
    let mut text = object(&fields, "  ");
    text.push('\n');
    Ok(text.into_bytes())
}

fn phase(phase: &PlacedPhase) -> Result<String> {
    let PlacedPhase {
        start,
        sync,
        objective,
        threads,
        pages,
    } = phase;
    let fields = [
        ("start", to_string(start)?),
        ("sync", to_string(sync)?),
        ("objective", to_string(objective)?),
        ("threads", rows(threads, "        ")?),
        ("pages", rows(pages, "        ")?),
    ];
    Ok(object(&fields, "      "))
}

fn rows<T: Serialize>(rows: &[T], indent: &str) -> Result<String> {
    let texts: Result<Vec<String>> = rows.iter().map(to_string).collect();
    Ok(lines("[", &texts?, "]", indent))
}

fn object(fields: &[(&str, String)], indent: &str) -> String {
    let field = |(name, value): &(&str, String)| format!("\"{name}\": {value}");
    let fields: Vec<String> = fields.iter().map(field).collect();
    lines("{", &fields, "}", indent)
}

/// Each item on a line; the closing bracket two columns before them.
fn lines(open: &str, items: &[String], close: &str, indent: &str) -> String {
    if items.is_empty() {
        return format!("{open}{close}");
    }
    let items = items.join(&format!(",\n{indent}"));
    let outer = indent.len().saturating_sub(2);
    format!("{open}\n{indent}{items}\n{:outer$}{close}", "")
}
