//! `hither sim`: what placements of a recorded run would do, on this machine or another.
mod args;
mod forecast;
mod keep;
mod model;
mod plans;
mod predict;
mod recorded;
pub mod render;
mod render_by;
mod replay;
mod structures;
mod verdict;
mod wanted;
mod warm;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use hither_profile::{Prediction, PREDICTION_FORMAT};

pub use args::Args;

use super::map;
use super::output::is_stdout;
use super::style::Style;
use args::By;
use hither_model::map::data::PageSize;
use model::Model;
use recorded::Recording;
use wanted::{JOINT_DATA, USUAL};

/// Reads, simulates, prints.
///
/// # Errors
/// One sentence when something cannot be read, simulated or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let named = args.output.as_deref();
    let json = args.json || named.is_some_and(is_stdout);
    let named = named.filter(|name| !is_stdout(name));
    let output = named.map(keep::destination).transpose()?;
    let models = model::models(&args.on)?;
    let mut prediction = Prediction {
        format: PREDICTION_FORMAT,
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        comparisons: Vec::new(),
    };
    let style = Style::of_stdout();
    for file in &args.profiles {
        let recording = Recording::open(file, None)?;
        let before = prediction.comparisons.len();
        for model in &models {
            let forecast = predict::forecast(args, &recording, model)?;
            if !json {
                print(&(render::render(&forecast, &tables(args), style) + "\n"))?;
            }
            prediction.comparisons.push(forecast);
        }
        if !args.no_keep {
            keep::in_profile(&prediction.comparisons[before..], file);
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

/// What `hither map --policy best` takes.
pub struct Best {
    pub threads: String,
    pub data: String,
    pub verdict: String,
}

/// The fastest of the usual policies that `hither map` has and that leave nothing to chance, with
/// pages left to the system and placed, or placed as `args` say.
///
/// # Errors
/// As [`run`].
pub fn best(args: &map::Args, profile: &Path) -> Result<Best> {
    let data: Vec<&str> = match &args.choice.data {
        Some(data) => vec![data],
        None => vec!["first-touch", JOINT_DATA],
    };
    let known = USUAL.iter().filter(|threads| threads.is_known());
    let pairs =
        known.flat_map(|threads| data.iter().map(|data| format!("{}+{data}", threads.name())));
    let policies: Vec<String> = pairs.collect();
    let policies = format!("os,{}", policies.join(","));
    let (file, seed) = (profile.display().to_string(), args.choice.seed.to_string());
    let words = [file.as_str(), "--policy", &policies, "--seed", &seed];
    let mut own = Args::of(&words)?;
    own.map_words = words_of(args);
    let recording = Recording::open(profile, args.threads.as_ref())?;
    let model = Model::of_map(&args.on, recording.input.placed.len())?;
    let forecast = predict::forecast(&own, &recording, &model)?;
    let ours = forecast
        .placements
        .iter()
        .filter(|p| p.thread_policy != "os");
    let fastest = ours.min_by(|a, b| a.amounts.time.total_cmp(&b.amounts.time));
    let fastest = fastest.context("there is nothing to choose from")?;
    Ok(Best {
        threads: fastest.thread_policy.clone(),
        data: fastest
            .data_policy
            .clone()
            .unwrap_or_else(|| "first-touch".to_owned()),
        verdict: forecast.verdict,
    })
}

/// What else of the options of `hither map` says where threads and pages go.
fn words_of(args: &map::Args) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(capacity) = args.on.capacity {
        add("--capacity", capacity.to_string());
    }
    if let Some(mix) = args.choice.mix {
        add("--mix", mix.to_string());
    }
    for (name, decision) in &args.choice.structures {
        let decision = map::args::decision_name(*decision);
        add("--structure", format!("{name}={decision}"));
    }
    let size = match args.choice.page_size {
        PageSize::K4 => "4k",
        PageSize::M2 => "2m",
    };
    add("--page-size", size.to_owned());
    let phases = &args.phases;
    if phases.phases {
        add("--phase-window", phases.phase_window.to_string());
        add("--phase-difference", phases.phase_difference.to_string());
        add("--min-heterogeneity", phases.min_heterogeneity.to_string());
        add("--min-amount", phases.min_amount.to_string());
        add("--thread-interval", format!("{}ns", phases.thread_interval));
        add("--page-interval", format!("{}ns", phases.page_interval));
        words.push("--phases".to_owned());
    }
    if args.on.siblings {
        words.push("--siblings".to_owned());
    }
    words
}

/// What to type now: for the first program on the first machine.
fn next(prediction: &Prediction, models: &[Model]) -> String {
    let first = prediction.comparisons.first().zip(models.first());
    first.map_or_else(String::new, |(forecast, model)| {
        format!("next: {}\n", render::next(forecast, model.name.as_deref()))
    })
}

fn tables(args: &Args) -> Vec<By> {
    let mut tables = args.by.clone();
    if args.verbose {
        tables.extend([By::Level, By::Link, By::Node, By::Energy, By::Time]);
    }
    let mut seen = Vec::new();
    tables.retain(|by| {
        let new = !seen.contains(by);
        seen.push(*by);
        new
    });
    tables
}

/// That nobody reads to the end is no failure.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write the prediction")
}
