//! `hither sim`: what placements of a recorded run would do, on this machine or another.
mod args;
mod forecast_destination;
pub mod render;
mod render_by;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use hither_profile::{Prediction, PREDICTION_FORMAT};

pub use args::Args;

use super::output::is_stdout;
use super::printed::print;
use super::progress::Counters;
use super::style::TerminalStyle;
use crate::app::study::sim_machine::{self, SimMachine};
use crate::app::study::{forecast, run_recording::RunRecording};
use args::BreakdownTable;

/// Reads, simulates, prints.
///
/// # Errors
/// One sentence when something cannot be read, simulated or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let named = args.output.as_deref();
    let json = args.json || named.is_some_and(is_stdout);
    let named = named.filter(|name| !is_stdout(name));
    let output = named.map(forecast_destination::destination).transpose()?;
    let models = sim_machine::models(args.on.names(), args.on.machine.as_deref())?;
    let (options, progress) = (args.options(), Counters { quiet: args.quiet });
    let mut prediction = Prediction {
        format: PREDICTION_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        comparisons: Vec::new(),
    };
    let style = TerminalStyle::of_stdout();
    for file in &args.profiles {
        let recording = RunRecording::open(file, None)?;
        let before = prediction.comparisons.len();
        for model in &models {
            let forecast = forecast(&options, &recording, model, &progress)?;
            if !json {
                print(&(render::render(&forecast, &breakdown_tables(args), style) + "\n"))?;
            }
            prediction.comparisons.push(forecast);
        }
        if !args.no_keep {
            forecast_destination::in_profile(&prediction.comparisons[before..], file);
        }
    }
    if let Some(path) = output {
        hither_profile::write_prediction(&prediction, &path)?;
    }
    if json {
        print(&(serde_json::to_string_pretty(&prediction)? + "\n"))?;
    } else {
        print(&next(&prediction, &models))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The files that may be written.
pub fn output_paths(args: &Args) -> Vec<PathBuf> {
    forecast_destination::paths(&args.profiles, args.output.as_deref())
}

/// What to type now: for the first program on the first machine.
fn next(prediction: &Prediction, models: &[SimMachine]) -> String {
    let first = prediction.comparisons.first().zip(models.first());
    first.map_or_else(String::new, |(forecast, model)| {
        format!("next: {}\n", render::next(forecast, model.name.as_deref()))
    })
}

fn breakdown_tables(args: &Args) -> Vec<BreakdownTable> {
    let mut tables = args.by.clone();
    if args.verbose {
        tables.extend([
            BreakdownTable::Level,
            BreakdownTable::Link,
            BreakdownTable::Node,
            BreakdownTable::Energy,
            BreakdownTable::Time,
        ]);
    }
    let mut seen = Vec::new();
    tables.retain(|by| {
        let new = !seen.contains(by);
        seen.push(*by);
        new
    });
    tables
}
