//! `hither topo`: what a machine looks like to hither, and which machines it knows by name.
use super::machine_args::MachineArgs;
use super::printed::print;
use super::render_topo;
use super::style::TerminalStyle;
use anyhow::Result;
use hither_model::topology::{self, CpuKindSelection};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hither topo                                  this machine, as far as it may be used here
  hither topo --list                           machines that hither knows by name
  hither topo epyc-9654x2-nps4                 one of them
  hither topo 'pack:2 core:4 pu:2'             a machine in hwloc's short notation
  hither topo other.xml                        one saved there with `lstopo other.xml`
  hither topo --topology other.xml             the same, as other verbs take it
  hither topo --pus 0-3,8                      only these PUs
  hither topo --xml > here.xml                 for --topology elsewhere, or for lstopo -i

Numbers after P# are the kernel's, as taskset, numactl and --pus take them; the others are
hwloc's, which follow the machine's order.";

/// Show a machine: its nodes, caches and cores, their numbers, sizes and distances
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Machine to show, as --topology takes it [default: this machine]
    #[arg(value_name = "MACHINE", conflicts_with = "topology")]
    shown: Option<String>,

    #[command(flatten)]
    machine: MachineArgs,

    /// List the machines that hither knows by name
    #[arg(long, conflicts_with_all = ["shown", "topology", "pus", "cpu_kind", "xml", "all"])]
    list: bool,

    /// Draw every part, also those that look alike
    #[arg(long)]
    all: bool,

    /// As JSON, as hither maps to it: units, nodes, the tree, latencies
    #[arg(long, conflicts_with = "all")]
    json: bool,

    /// As hwloc XML
    #[arg(long, conflicts_with_all = ["json", "all"])]
    xml: bool,
}

/// Reads the machine, prints it.
///
/// # Errors
/// One sentence when there is no such machine, or nothing of it may be used.
pub fn run(args: &Args) -> Result<ExitCode> {
    let text = text(args, TerminalStyle::of_stdout())?;
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn text(args: &Args, style: TerminalStyle) -> Result<String> {
    if args.list {
        let known = topology::shipped_machines();
        return if args.json {
            render_topo::list_json(&known)
        } else {
            render_topo::list(&known, style)
        };
    }
    let mut machine = args.machine.clone();
    machine.topology = machine.topology.or_else(|| args.shown.clone());
    let name = machine.topology.as_deref();
    let mut restrictions = machine.restrictions(None);
    if machine.cpu_kind.is_none() {
        // Nothing is placed yet: show what there is.
        restrictions.kinds = CpuKindSelection::All;
    }
    let selected = topology::select_machine(name, &restrictions)?;
    if args.xml {
        return Ok(selected.export_xml()?);
    }
    if args.json {
        return render_topo::json(&selected, name);
    }
    Ok(render_topo::render(&selected, &machine, args.all, style))
}
