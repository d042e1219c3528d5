//! `hither report --text`: verdict and findings for people at a terminal.
use super::render_comparison;
use super::render_report::counted_on;
use super::report_view::{header, FindingStructure, FindingView, ReportView};
use super::sim::render as sim;
use super::style::{percent, strip_control_characters, TerminalStyle};
use crate::report::page::{DeclarationSite, ReportRun, SourceQuote};
use hither_profile::{FindingKind, FindingLine, ObjectIx, ObjectKind, SuggestedFix};
use std::collections::HashMap;

/// `next` is the command to type now; `top` findings are shown at most.
pub fn render(view: &ReportView, next: &str, top: usize, style: TerminalStyle) -> String {
    let mut out = style.wrap("", &header(&view.run), 2);
    let line = style.wrap("Verdict: ", &view.verdict.sentence, 2);
    out.push_str(&format!("\n{}\n", style.bold(line.trim_end())));
    let sentences = view.verdict.reasons.iter().chain(&view.verdict.gain);
    for sentence in sentences {
        out.push_str(&style.wrap("  - ", &strip_control_characters(sentence), 4));
    }
    out.push_str(&style.wrap("  - ", &nodes(&view.run), 4));
    for forecast in &view.predictions {
        let title = format!(
            "Placements predicted on {}",
            strip_control_characters(&forecast.title)
        );
        out.push_str(&format!("\n{}\n", style.bold(&title)));
        out.push_str(&sim::table(forecast, style));
        out.push_str(&style.wrap("  ", &sim::legend(forecast, style), 2));
    }
    if let Some(comparison) = &view.comparison {
        out.push_str(&render_comparison::render(comparison, top, style));
    }
    out.push_str(&format!("\n{}\n", style.bold("Findings, worst first")));
    if view.findings.is_empty() {
        out.push_str("  Nothing wrong was found in this profile.\n");
    }
    let mut shown: HashMap<ObjectIx, usize> = HashMap::new();
    for (at, found) in view.findings.iter().take(top).enumerate() {
        let object = found.finding.object;
        let before = object.and_then(|object| shown.get(&object)).copied();
        let before = before.map(|before| (before + 1, &view.findings[before]));
        out.push_str(&finding(at + 1, found, before, style));
        if let Some(object) = object {
            shown.entry(object).or_insert(at);
        }
    }
    let all = view.findings.len();
    if all > top {
        out.push_str(&format!("\n  ... and {} more (-n {all})\n", all - top));
    }
    if !view.unseen.is_empty() {
        out.push_str(&format!("\n{}\n", style.bold("What could not be seen")));
    }
    for unseen in &view.unseen {
        let text = format!(
            "{} {}",
            strip_control_characters(&unseen.what),
            unseen.effect
        );
        out.push_str(&style.wrap("  - ", &text, 4));
    }
    out.push_str(&format!("\nnext: {next}\n"));
    out
}

fn nodes(run: &ReportRun) -> String {
    counted_on(run.nodes, &run.nodes_from)
}

/// `before` is the first finding about the same structure, which describes it.
fn finding(
    number: usize,
    found: &FindingView,
    before: Option<(usize, &FindingView)>,
    style: TerminalStyle,
) -> String {
    let finding = &found.finding;
    let first = format!("{number}. ");
    let indent = first.len();
    let title = style.wrap(&first, &strip_control_characters(&finding.title), indent);
    let mut out = format!("{}\n", style.bold(title.trim_end()));
    let pad = " ".repeat(indent);
    let what = match finding.kind {
        // Nothing is wrong: there is no share of anything to name.
        FindingKind::FitsInCaches => finding.kind.name().to_owned(),
        other => format!(
            "{}: {} of the {}",
            other.name(),
            percent(finding.severity),
            finding.severity_of
        ),
    };
    out.push_str(&style.wrap(&pad, &what, indent));
    if let (Some(structure), Some((before, _))) = (&found.structure, before) {
        let name = strip_control_characters(&structure.name);
        let text = format!("{name} is described with finding {before}");
        out.push_str(&style.wrap(&pad, &text, indent + 2));
    } else if let Some(structure) = &found.structure {
        out.push_str(&style.wrap(&pad, &whereabouts(structure), indent + 2));
        let site = structure.site.as_ref();
        let quote = site.and_then(|s| quote_of(&found.quotes, &s.file, s.line));
        out.push_str(&quote.map_or_else(String::new, |q| quoted(q, &pad)));
    }
    for sentence in &finding.evidence {
        out.push_str(&style.wrap(
            &format!("{pad}- "),
            &strip_control_characters(sentence),
            indent + 2,
        ));
    }
    if finding.kind == FindingKind::FirstTouch {
        out.push_str(&first_touch_line(found, &pad));
    }
    if before.is_none_or(|(_, before)| before.finding.lines != finding.lines) {
        out.push_str(&lines(found, &pad, style));
    }
    for fix in &finding.fixes {
        out.push_str(&repair(fix, &pad, style));
    }
    out.truncate(out.trim_end().len());
    format!("\n{out}\n")
}

fn whereabouts(structure: &FindingStructure) -> String {
    let made = match structure.kind {
        ObjectKind::Heap => "allocated",
        ObjectKind::Mmap | ObjectKind::Shared => "mapped",
        ObjectKind::Static | ObjectKind::Stack | ObjectKind::ThreadLocal => "declared",
    };
    let mut text = strip_control_characters(&structure.name);
    if !structure.type_name.is_empty() {
        text.push_str(&format!(
            " ({})",
            strip_control_characters(&structure.type_name)
        ));
    }
    text.push_str(&format!(", {}", structure.blocks));
    if let Some(share) = structure.share {
        text.push_str(&format!(", {} of all accesses", percent(share)));
    }
    if let Some(share) = structure.fetch_share {
        text.push_str(&format!(", {} of all fetches", percent(share)));
    }
    if let Some(site) = &structure.site {
        text.push_str(&format!(", {made} at {}", place(site)));
    }
    text
}

fn place(site: &DeclarationSite) -> String {
    located(&site.file, site.line, &site.function)
}

fn located(file: &str, line: u32, function: &str) -> String {
    let line = match line {
        0 => String::new(),
        line => format!(":{line}"),
    };
    let function = match function {
        "" => String::new(),
        name => format!(" ({})", strip_control_characters(name)),
    };
    format!("{}{line}{function}", strip_control_characters(file))
}

fn quote_of<'a>(quotes: &'a [SourceQuote], file: &str, line: u32) -> Option<&'a SourceQuote> {
    quotes.iter().find(|q| q.file == file && q.line == line)
}

/// Source is never broken into lines of its own.
fn quoted(quote: &SourceQuote, pad: &str) -> String {
    let lines = quote.lines.iter().map(|l| {
        let mark = if l.line == quote.line { '>' } else { ' ' };
        let text = strip_control_characters(&l.text);
        let line = format!("{pad}{mark}{:>6}  {text}", l.line);
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// The source that the evidence names.
fn first_touch_line(found: &FindingView, pad: &str) -> String {
    let structure = found.structure.as_ref();
    let touched = structure.and_then(|s| s.first_touch.as_ref());
    let quote = touched.and_then(|t| quote_of(&found.quotes, &t.site.file, t.site.line));
    quote.map_or_else(String::new, |q| {
        format!("{pad}first touched at\n{}", quoted(q, pad))
    })
}

/// Only the line itself: a finding names several.
fn marked(quote: &SourceQuote, pad: &str) -> String {
    let own = quote.lines.iter().find(|l| l.line == quote.line);
    own.map_or_else(String::new, |l| {
        format!("{pad}{}\n", strip_control_characters(l.text.trim()))
    })
}

fn lines(found: &FindingView, pad: &str, style: TerminalStyle) -> String {
    let lines: &[FindingLine] = &found.finding.lines;
    if lines.is_empty() {
        return String::new();
    }
    let mut out = format!("{pad}used most at\n");
    for line in lines {
        let first = format!("{pad}{:>8}  ", percent(line.share));
        let at = located(&line.file, line.line, &line.function);
        out.push_str(&style.wrap(&first, &at, first.len()));
        if let Some(quote) = quote_of(&found.quotes, &line.file, line.line) {
            out.push_str(&marked(quote, &" ".repeat(first.len() + 2)));
        }
    }
    out
}

/// What to copy stands alone and is never broken: lines go as they are into a shell or editor.
fn repair(fix: &SuggestedFix, pad: &str, style: TerminalStyle) -> String {
    let mut out = style.wrap(
        &format!("{pad}=> "),
        &strip_control_characters(&fix.what),
        pad.len() + 3,
    );
    if fix.copy.is_empty() {
        return out;
    }
    out.push('\n');
    for line in fix.copy.lines() {
        let line = format!("{pad}    {}", strip_control_characters(line));
        out.push_str(&format!("{}\n", line.trim_end()));
    }
    out.push('\n');
    out
}
