//! What a profile says of the user and the machine besides the program's behaviour: taken out
//! where it goes to people who may not see it.
use crate::tables::Region;
use crate::{PlacementComparison, Profile};

/// Stands for what was taken out.
pub const REDACTED: &str = "[redacted]";

/// What hwloc notes of a machine that says nothing of where it stands and who uses it.
const HARMLESS_INFO: [&str; 8] = [
    "Architecture",
    "Backend",
    "CPUFamilyNumber",
    "CPUModel",
    "CPUModelNumber",
    "CPUStepping",
    "CPUVendor",
    "OSName",
];

/// The largest page that metrics look at. Regions share one or not by their addresses.
const LARGEST_PAGE: u64 = 64 << 20;

impl Profile {
    /// Takes out the program's arguments, folders of all paths, the host's name, the source lines.
    /// Names of files, functions, variables and threads stay: what is shown is about these.
    pub fn redact(&mut self) {
        let meta = &mut self.meta;
        redact_command(&mut meta.command);
        meta.working_directory = REDACTED.to_owned();
        meta.machine.hostname = REDACTED.to_owned();
        meta.machine.topology_xml = without_infos(&meta.machine.topology_xml);
        for sentence in &mut meta.limits {
            *sentence = shorten_paths(sentence, |word| word.starts_with('/'));
        }
        let executables = meta.processes.iter_mut().map(|p| &mut p.executable);
        let mapped = self.regions.iter_mut().map(|r| &mut r.file);
        let sites = self.sites.iter_mut().map(|s| &mut s.file);
        let touching = self.first_touch_lines.iter_mut();
        let (touching, led): (Vec<_>, Vec<_>) =
            touching.map(|l| (&mut l.file, &mut l.path)).unzip();
        let allocating = self.allocation_paths.iter_mut().map(|a| &mut a.path);
        let objects = self.objects.iter_mut();
        let (declared, named): (Vec<_>, Vec<_>) =
            objects.map(|o| (&mut o.file, &mut o.name)).unzip();
        for path in executables
            .chain(mapped)
            .chain(sites)
            .chain(touching)
            .chain(declared)
        {
            *path = file_name(path).to_owned();
        }
        for text in allocating.chain(led).chain(named) {
            *text = shorten_paths(text, |_| true);
        }
        self.source_text = Vec::new();
    }

    /// Puts the regions of each process close together, so that the profile does not say where
    /// the kernel had put them. Which of them have a large page in common stays as it is.
    pub fn hide_load_addresses(&mut self) {
        let known = self.regions.iter_mut().filter(|r| r.address > 0);
        let mut regions: Vec<&mut Region> = known.collect();
        regions.sort_by_key(|r| (r.process, r.address));
        for process in regions.chunk_by_mut(|a, b| a.process == b.process) {
            // The last page of the largest size so far, there and here.
            let (mut before, mut now) = (0, 0);
            for region in process {
                let first = region.address / LARGEST_PAGE;
                let end = region.address.saturating_add(region.size.max(1) - 1);
                let start = match now > 0 && first <= before {
                    true => now - (before - first),
                    false => now + 1,
                };
                let last = (end / LARGEST_PAGE).max(before);
                now = start + (last - first);
                before = last;
                region.address = start * LARGEST_PAGE + region.address % LARGEST_PAGE;
            }
        }
    }
}

impl PlacementComparison {
    /// As [`Profile::redact`], which it then still belongs to; `host` is the name to leave out.
    pub fn redact(&mut self, host: &str) {
        redact_command(&mut self.source.command);
        self.machine_file = file_name(&self.machine_file).to_owned();
        self.source.file = file_name(&self.source.file).to_owned();
        let files = self.placements.iter_mut().flat_map(|p| {
            let file = p.file.as_mut();
            file.into_iter().chain([&mut p.name])
        });
        let sentences = self
            .notes
            .iter_mut()
            .chain([&mut self.verdict, &mut self.title]);
        for text in files.chain(&mut self.structures).chain(sentences) {
            *text = shorten_paths(text, |_| true);
            if !host.is_empty() && self.machine.name == host {
                *text = text.replace(host, REDACTED);
            }
        }
        if self.machine.name == host {
            REDACTED.clone_into(&mut self.machine.name);
        }
    }
}

/// The program's own name stays.
fn redact_command(command: &mut Vec<String>) {
    let more = command.len() > 1;
    command.truncate(1);
    for program in command.iter_mut() {
        *program = file_name(program).to_owned();
    }
    if more {
        command.push(REDACTED.to_owned());
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .unwrap_or(path)
}

/// Each word that is a path becomes its last part; `which` says what words to look at.
fn shorten_paths(text: &str, which: impl Fn(&str) -> bool) -> String {
    let ends_word = |c: char| c.is_whitespace() || "()<>[]{}\"'`;,=".contains(c);
    let mut short = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends_word) {
        let word = piece.trim_end_matches(ends_word);
        match which(word) {
            true => short.push_str(file_name(word)),
            false => short.push_str(word),
        }
        short.push_str(&piece[word.len()..]);
    }
    short
}

/// hwloc's XML without what it notes of the machine, but for [`HARMLESS_INFO`].
fn without_infos(xml: &str) -> String {
    let mut kept = String::with_capacity(xml.len());
    let mut rest = xml;
    while let Some(at) = rest.find("<info") {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let end = from.find('>').map_or(from.len(), |end| end + 1);
        let (info, after) = from.split_at(end);
        let is = |name: &&str| info.contains(&format!("name=\"{name}\""));
        if HARMLESS_INFO.iter().any(is) {
            kept.push_str(info);
        }
        rest = after;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProcessIx;
    use crate::tables::Object;

    #[test]
    fn paths_become_their_last_part() {
        let check =
            |text: &str, expected: &str| assert_eq!(shorten_paths(text, |_| true), expected);
        check(
            "main (/home/me/secret/app.c:12);f (b.c:3)",
            "main (app.c:12);f (b.c:3)",
        );
        check("constants of src/deep/a.c", "constants of a.c");
        check("operator/ (x)", "operator/ (x)");
        check("", "");
        let only_absolute = shorten_paths("reads/writes of /a/b, kept", |w| w.starts_with('/'));
        assert_eq!(only_absolute, "reads/writes of b, kept");
    }

    #[test]
    fn the_machine_keeps_its_shape_without_its_name() {
        let xml = r#"<object type="Machine"><info name="HostName" value="cat"/><info name="CPUModel" value="X"/><object/></object>"#;
        let kept = r#"<object type="Machine"><info name="CPUModel" value="X"/><object/></object>"#;
        assert_eq!(without_infos(xml), kept);
    }

    fn hidden(of: &[(u32, u64, u64)]) -> Vec<u64> {
        let region = |&(process, address, size): &(u32, u64, u64)| Region {
            process: ProcessIx(process),
            address,
            size,
            ..Region::default()
        };
        let mut profile = Profile {
            regions: of.iter().map(region).collect(),
            ..Profile::default()
        };
        profile.hide_load_addresses();
        profile.regions.iter().map(|r| r.address).collect()
    }

    #[test]
    fn regions_keep_the_large_pages_that_they_share() {
        const M: u64 = 1 << 20;
        let far = 0x7f31_0000_0000;
        // Two in one large page; one over three pages, one in the last of these; another process.
        let regions = [
            (0, far + 300 * M, M),
            (0, 0x5581_2340_1000, M),
            (0, 0x5581_2350_1000, M),
            (0, far + 60 * M, 100 * M),
            (0, far + 170 * M, M),
            (1, far, M),
            (0, 0, M),
        ];
        let at = |page: u64, address: u64| page * 64 * M + address % (64 * M);
        let expected = [
            at(5, far + 300 * M),
            at(1, 0x5581_2340_1000),
            at(1, 0x5581_2350_1000),
            at(2, far + 60 * M),
            at(4, far + 170 * M),
            at(1, far),
            0,
        ];
        assert_eq!(hidden(&regions), expected);
        // Another run, elsewhere by whole large pages, says the same.
        let moved = regions.map(|(p, a, s)| (p, a + u64::from(a > far) * (640 * M), s));
        assert_eq!(hidden(&moved)[..5], expected[..5]);
    }

    #[test]
    fn nothing_private_is_left_in_a_redacted_profile() {
        let mut profile = Profile::default();
        profile.meta.command = ["/home/me/bin/app", "--password=x"]
            .map(String::from)
            .into();
        profile.meta.working_directory = "/home/me".to_owned();
        profile.meta.machine.hostname = "quiet-cat".to_owned();
        profile.meta.limits = vec!["/home/me/a.c changed.".to_owned()];
        profile.objects = vec![Object {
            name: "/home/me/a.c:3 (main)".to_owned(),
            file: "/home/me/a.c".to_owned(),
            ..Object::default()
        }];
        profile.source_text = vec![crate::SourceText::default()];
        profile.redact();
        assert_eq!(profile.meta.command, ["app", REDACTED]);
        let all = format!("{profile:?}");
        for private in ["/home", "password", "quiet-cat", "SourceText {"] {
            assert!(!all.contains(private), "{private}: {all}");
        }
    }
}
