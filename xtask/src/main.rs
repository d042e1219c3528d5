//! Chores that are more than one command: `cargo xtask help`.
#![forbid(unsafe_code)]
mod commands;
mod dist;
mod dynamorio;
mod guest;
mod report_ui;
mod stamp;
mod test_lanes;
mod tracer_client;
mod workspace;

use std::process::ExitCode;

use anyhow::{bail, Result};

use workspace::Workspace;

struct XtaskCommand {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<ExitCode>,
}

const TASKS: &[XtaskCommand] = &[
    XtaskCommand {
        name: "tracer",
        about: "build DynamoRIO (once) and our client into target/lib/hither",
        run: tracer,
    },
    XtaskCommand {
        name: "test",
        about: "run the tests of all crates, two binaries at a time",
        run: test,
    },
    XtaskCommand {
        name: "dist",
        about: "package target/release/hither: a tarball and a .deb in target/dist",
        run: dist::main,
    },
    XtaskCommand {
        name: "guest",
        about: "run a command on a NUMA machine in QEMU; --help says how",
        run: guest::run,
    },
    XtaskCommand {
        name: "report-ui",
        about: "bundle the report's page into report-ui/dist",
        run: report_ui,
    },
    XtaskCommand {
        name: "report-packages",
        about: "fetch what bundling and testing the page needs into report-ui/node_modules",
        run: report_packages,
    },
    XtaskCommand {
        name: "help",
        about: "list the tasks",
        run: help,
    },
];

fn report_ui(arguments: &[String]) -> Result<ExitCode> {
    no_arguments(arguments)?;
    report_ui::build(&Workspace::find()?)?;
    Ok(ExitCode::SUCCESS)
}

fn report_packages(arguments: &[String]) -> Result<ExitCode> {
    no_arguments(arguments)?;
    report_ui::packages(&Workspace::find()?)?;
    Ok(ExitCode::SUCCESS)
}

fn tracer(arguments: &[String]) -> Result<ExitCode> {
    no_arguments(arguments)?;
    let ws = Workspace::find()?;
    let dynamorio = dynamorio::build(&ws)?;
    tracer_client::build(&ws, &dynamorio)?;
    Ok(ExitCode::SUCCESS)
}

fn test(arguments: &[String]) -> Result<ExitCode> {
    no_arguments(arguments)?;
    test_lanes::run()?;
    Ok(ExitCode::SUCCESS)
}

fn help(arguments: &[String]) -> Result<ExitCode> {
    no_arguments(arguments)?;
    println!("Usage: cargo xtask TASK\n\nTasks:");
    for t in TASKS {
        println!("  {:15} {}", t.name, t.about);
    }
    Ok(ExitCode::SUCCESS)
}

fn no_arguments(arguments: &[String]) -> Result<()> {
    if let Some(first) = arguments.first() {
        bail!("this task takes no arguments; leave `{first}` away");
    }
    Ok(())
}

fn run(args: &[String]) -> Result<ExitCode> {
    let [name, arguments @ ..] = args else {
        bail!("a task is expected; `cargo xtask help` lists them");
    };
    let Some(task) = TASKS.iter().find(|t| t.name == name.as_str()) else {
        bail!("there is no task `{name}`; `cargo xtask help` lists them");
    };
    (task.run)(arguments)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(status) => status,
        Err(e) => {
            eprintln!("xtask: {e:#}");
            ExitCode::FAILURE
        }
    }
}
