//! Chores that are more than one command: `cargo xtask help`.
#![forbid(unsafe_code)]
mod client;
mod dynamorio;
mod report_ui;
mod stamp;
mod step;
mod workspace;

use std::process::ExitCode;

use anyhow::{bail, Result};

use workspace::Workspace;

struct Task {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Result<()>,
}

const TASKS: &[Task] = &[
    Task {
        name: "tracer",
        about: "build DynamoRIO (once) and our client into target/lib/hither",
        run: tracer,
    },
    Task {
        name: "report-ui",
        about: "bundle the report's page into report-ui/dist",
        run: report_ui::build,
    },
    Task {
        name: "report-packages",
        about: "fetch what bundling and testing the page needs into report-ui/node_modules",
        run: report_ui::packages,
    },
    Task {
        name: "help",
        about: "list the tasks",
        run: help,
    },
];

fn tracer(ws: &Workspace) -> Result<()> {
    let dynamorio = dynamorio::build(ws)?;
    client::build(ws, &dynamorio)
}

fn help(_: &Workspace) -> Result<()> {
    println!("Usage: cargo xtask TASK\n\nTasks:");
    for t in TASKS {
        println!("  {:15} {}", t.name, t.about);
    }
    Ok(())
}

fn run(args: &[String]) -> Result<()> {
    let [name] = args else {
        bail!("one task is expected; `cargo xtask help` lists them");
    };
    let Some(task) = TASKS.iter().find(|t| t.name == name.as_str()) else {
        bail!("there is no task `{name}`; `cargo xtask help` lists them");
    };
    (task.run)(&Workspace::find()?)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask: {e:#}");
            ExitCode::FAILURE
        }
    }
}
