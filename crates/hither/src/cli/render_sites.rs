//! `hither stat --sites`: the call paths by which heap blocks are allocated.
use super::style::{count, percent, strip_control_characters, TerminalStyle};
use hither_model::metrics::allocation_paths::AllocationPathMetrics;
use hither_model::units::heap_blocks;

/// A structure and what was allocated of it, then the calls, innermost first.
pub fn render(paths: &[AllocationPathMetrics], top: usize, style: TerminalStyle) -> String {
    if paths.is_empty() {
        return "No heap blocks were seen.\n".to_owned();
    }
    let mut out = style.bold("Call paths that allocate, by accesses to their blocks");
    out.push('\n');
    for path in paths.iter().take(top) {
        let of = &path.blocks;
        let sizes = (of.smallest, of.largest);
        let blocks = heap_blocks(of.count, of.size, of.allocated, sizes);
        let accesses = count(of.reads + of.writes);
        let (share, name) = (
            percent(path.share),
            strip_control_characters(&path.structure),
        );
        out.push_str(&style.wrap("  ", &format!("{share}  {accesses}  {name}: {blocks}"), 4));
        for call in &path.calls {
            out.push_str(&format!("        {}\n", strip_control_characters(call)));
        }
    }
    let left = paths.len().saturating_sub(top);
    if left > 0 {
        out.push_str(&format!("  ... and {left} more (-n {})\n", paths.len()));
    }
    out
}
