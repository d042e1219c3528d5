//! Bundles the report's page: `report-ui/src` -> `report-ui/dist`, which is committed, so
//! that only who changes the page needs node.
use std::process::Command;

use anyhow::Result;

use crate::commands::{build_step, run};
use crate::workspace::Workspace;

const FIX: &str = "install Debian's nodejs and npm";

pub fn build(ws: &Workspace) -> Result<()> {
    let folder = ws.root.join("report-ui");
    let command = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(&folder);
        command
    };
    packages(ws)?;
    build_step("types", || {
        let tsc = "node_modules/typescript/bin/tsc";
        run(&mut command("node", &[tsc, "--noEmit"]), FIX, false)
    })?;
    build_step("bundle", || {
        run(&mut command("node", &["build.mjs"]), FIX, true)
    })
}

/// What package-lock.json names, unless it is there already.
pub fn packages(ws: &Workspace) -> Result<()> {
    let folder = ws.root.join("report-ui");
    let lock = std::fs::metadata(folder.join("package-lock.json")).and_then(|m| m.modified());
    let installed = folder.join("node_modules/.package-lock.json");
    let installed = std::fs::metadata(installed).and_then(|m| m.modified());
    if matches!((lock, installed), (Ok(lock), Ok(installed)) if installed >= lock) {
        return Ok(());
    }
    build_step("packages", || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund"])
            .current_dir(&folder);
        run(&mut npm, FIX, false)
    })
}
