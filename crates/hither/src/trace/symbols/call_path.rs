//! The calls that led to an allocation, as people want to read them: with those that were inlined,
//! without those of a standard library's templates, up to `main`.
use super::line_table::InlineFrame;
use super::{frame_filter, ProgramSymbols};
use crate::trace::symbolizer::{SourceLine, Symbolizer};
use std::path::{Path, PathBuf};

/// `frames`: (module file, vaddr of the call), innermost first, as the result.
pub fn call_path(symbols: &mut ProgramSymbols, frames: &[(PathBuf, u64)]) -> Vec<SourceLine> {
    let mut path: Vec<SourceLine> = Vec::new();
    for (depth, (file, pc)) in frames.iter().enumerate() {
        let calls = calls_at(symbols, file, *pc);
        // A stack holds return addresses of calls that are over.
        let old = frame_filter::is_system(file)
            && depth > 0
            && calls
                .iter()
                .any(|c| frame_filter::is_wrapper(&c.function) || c.function.ends_with("free"));
        if old || frame_filter::is_tracer(file) {
            continue;
        }
        path.extend(calls);
        if let Some(main) = path.iter().position(|c| c.function == "main") {
            path.truncate(main + 1);
            break;
        }
    }
    path
}

/// The call and those that it was inlined into, innermost first.
fn calls_at(symbols: &mut ProgramSymbols, file: &Path, pc: u64) -> Vec<SourceLine> {
    let inlined = symbols
        .module(file)
        .map(|m| m.frames(pc))
        .unwrap_or_default();
    let own = |f: &InlineFrame| f.line > 0 && !frame_filter::is_library_source(&f.file);
    if inlined.iter().any(|f| f.line > 0) {
        let own = inlined.into_iter().filter(own).map(|f| SourceLine {
            file: f.file,
            line: f.line,
            function: f.function,
            ..SourceLine::default()
        });
        return own.collect();
    }
    let known = symbols.source_line(file, pc).unwrap_or_default();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    vec![match known.function.as_str() {
        "" => SourceLine {
            function: frame_filter::offset_label(file, pc, None),
            ..SourceLine::default()
        },
        _ => SourceLine {
            file: name.into_owned(),
            ..known
        },
    }]
}
