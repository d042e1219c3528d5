//! A table for people: a line per thread, then a line per run of pages.
use super::LauncherFormat;
use hither_profile::{strip_control_characters, Placement, RegionIdentity};

pub struct TextFormat;

impl LauncherFormat for TextFormat {
    fn name(&self) -> &'static str {
        "text"
    }

    fn summary(&self) -> &'static str {
        "a table for people"
    }

    fn write(&self, placement: &Placement) -> Result<String, String> {
        let mut out = String::new();
        for (at, phase) in placement.phases.iter().enumerate() {
            if placement.phases.len() > 1 {
                out += &format!("phase {at} from {:.3} s\n", phase.start as f64 / 1e9);
            }
            out += &format!(
                "{:>6} {:>6} {:>6} {:>6}  name\n",
                "thread", "PU", "OS", "node"
            );
            for place in &phase.threads {
                let name = placement.threads.get(place.thread().at());
                let line = format!(
                    "{:>6} {:>6} {:>6} {:>6}  {}",
                    place.thread(),
                    place.pu(),
                    place.os_index(),
                    place.node(),
                    name.map_or(String::new(), |t| strip_control_characters(&t.name))
                );
                out += line.trim_end();
                out.push('\n');
            }
            if !phase.pages.is_empty() {
                out += &format!("{:>10} {:>10} {:>6}  region\n", "page", "pages", "node");
            }
            for places in &phase.pages {
                let region = placement.regions.get(places.region as usize);
                let region = region.map_or_else(String::new, |region| {
                    strip_control_characters(&describe_region(region))
                });
                for run in &places.runs {
                    out += &format!(
                        "{:>10} {:>10} {:>6}  {region}\n",
                        run.first(),
                        run.pages(),
                        run.node()
                    );
                }
            }
        }
        Ok(out)
    }
}

/// A region in words.
pub fn describe_region(region: &RegionIdentity) -> String {
    use hither_profile::RegionKind as Kind;
    let owner = region.thread.map_or_else(
        || format!("process {}", region.process),
        |t| format!("thread {t}"),
    );
    match region.kind {
        Kind::Elf | Kind::Shared => format!("{} of process {}", region.file, region.process),
        Kind::Brk => format!("brk heap of process {}", region.process),
        Kind::Mmap => format!(
            "mapping {} of {} bytes by {owner}",
            region.ordinal, region.size
        ),
        Kind::Stack => format!("stack of {owner}"),
        Kind::Other => format!("other memory of process {}", region.process),
    }
}
