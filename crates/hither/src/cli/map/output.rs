//! Where the placement goes, found out before the work rather than after.
use super::args::Args;
use crate::cli::output::{has_folder, is_stdout, written};
use anyhow::{bail, Context, Result};
use hither_profile::{check_output_path, check_placement_destination, OutputPlace, Placement};
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".place.json";

/// What is done with a placement.
pub enum PlacementOutput {
    /// Written to a file.
    Placement(PathBuf),
    /// The same, to standard output.
    PlacementPrinted,
    /// Printed, as text of another format or JSON.
    Print,
    /// Another format, written to a file.
    Other(PathBuf),
}

/// # Errors
/// When it cannot be written there.
pub fn destination(args: &Args) -> Result<PlacementOutput> {
    let json = args.format == "json";
    let printed = args.output.as_deref().is_some_and(is_stdout);
    if printed && json {
        if args.json || args.explain {
            let other = if args.json { "--json" } else { "--explain" };
            bail!("-o - prints the placement and nothing else; name a file with -o, or leave {other} away");
        }
        return Ok(PlacementOutput::PlacementPrinted);
    }
    Ok(match &args.output {
        Some(_) if printed => PlacementOutput::Print,
        Some(name) if json => PlacementOutput::Placement(check_writable(named(name))?),
        Some(name) => PlacementOutput::Other(check_new(name)?),
        None if json && !args.json => {
            PlacementOutput::Placement(check_writable(default_name(args))?)
        }
        None => PlacementOutput::Print,
    })
}

/// The file that may be written.
pub fn output_path(args: &Args) -> PathBuf {
    match &args.output {
        Some(name) if args.format == "json" => named(name),
        Some(name) => name.clone(),
        None => default_name(args),
    }
}

/// As it was given where it is the name of a JSON file, else with the suffix.
fn named(name: &Path) -> PathBuf {
    match name.extension() {
        Some(extension) if extension == "json" => name.to_owned(),
        _ => with_suffix(name),
    }
}

fn with_suffix(name: &Path) -> PathBuf {
    let text = name.as_os_str().to_string_lossy();
    let stem = text.strip_suffix(SUFFIX);
    let stem = stem.or_else(|| text.strip_suffix(".place"));
    format!("{}{SUFFIX}", stem.unwrap_or(&text)).into()
}

/// The name of what is placed, here.
fn default_name(args: &Args) -> PathBuf {
    let input = args.matrix.as_ref().or(args.input.as_ref());
    let stem = input.and_then(|path| path.file_stem());
    with_suffix(Path::new(stem.unwrap_or("placement".as_ref())))
}

fn check_writable(path: PathBuf) -> Result<PathBuf> {
    has_folder(&path, "-o")?;
    check_placement_destination(&path)?;
    Ok(path)
}

fn check_new(path: &Path) -> Result<PathBuf> {
    has_folder(path, "-o")?;
    check_output_path(path).with_context(|| format!("cannot write {}", path.display()))?;
    if path.symlink_metadata().is_ok() {
        bail!(
            "{} exists; it was left as it is: choose another name with -o, or move it away",
            path.display()
        );
    }
    Ok(path.to_owned())
}

/// Writes text to a new file; what cannot be completed is removed.
pub fn write_text(text: &str, path: &Path) -> Result<()> {
    written(
        OutputPlace::new(path).and_then(|place| place.create(text.as_bytes())),
        path,
    )
}

/// Writes a placement.
pub fn write(placement: &Placement, path: &Path) -> Result<()> {
    hither_profile::write_placement(placement, path)?;
    Ok(())
}
