//! Names from others in all that hither prints: none steers the terminal, turns the direction of
//! writing or breaks a line.
use super::*;
use hither_profile::{is_hidden_char, read, read_placement, write, write_placement, Profile};

/// Sets a title, moves the cursor, turns text round, ends a line.
const EVIL: &str = "a\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}1A\u{202e}b\u{2028}c\u{200b}\u{feff}\r\nd";

fn make_evil(profile: &mut Profile) {
    let meta = &mut profile.meta;
    let machine = &mut meta.machine;
    let about = [
        &mut meta.writer,
        &mut meta.working_directory,
        &mut machine.hostname,
        &mut machine.kernel,
        &mut machine.cpu,
    ];
    let lists = meta.command.iter_mut().chain(&mut meta.limits);
    let executables = meta.processes.iter_mut().map(|p| &mut p.executable);
    let threads = profile.threads.iter_mut().map(|t| &mut t.name);
    let regions = profile.regions.iter_mut().map(|r| &mut r.file);
    let objects = profile.objects.iter_mut();
    let objects =
        objects.flat_map(|o| [&mut o.name, &mut o.type_name, &mut o.file, &mut o.function]);
    let members = profile.members.iter_mut();
    let members = members.flat_map(|m| [&mut m.name, &mut m.type_name]);
    let sites = profile.sites.iter_mut();
    let sites = sites.flat_map(|s| [&mut s.file, &mut s.function, &mut s.callee]);
    let touching = profile.first_touch_lines.iter_mut();
    let touching = touching.flat_map(|l| [&mut l.file, &mut l.function, &mut l.path]);
    let paths = profile.allocation_paths.iter_mut().map(|a| &mut a.path);
    let lines = profile.source_text.iter_mut();
    let lines = lines.flat_map(|l| [&mut l.file, &mut l.text]);
    let texts = about
        .into_iter()
        .chain(lists)
        .chain(executables)
        .chain(threads);
    let texts = texts
        .chain(regions)
        .chain(objects)
        .chain(members)
        .chain(sites);
    for text in texts.chain(touching).chain(paths).chain(lines) {
        text.push_str(EVIL);
    }
}

/// A profile and a placement of it with such names, and files that are no files of ours.
fn evil_place() -> Place {
    let place = Place::new();
    let program = workload("stencil2d");
    let line = format!("{HITHER} trace -q --full -o p -- {program} 64 4");
    let traced = place.shell(&line);
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let mut profile = read(&place.path("p.hither")).expect("a profile");
    let map = format!("{HITHER} map --force --topology 'node:4 core:2 pu:1' -o m p.hither");
    let mapped = place.shell(&map);
    assert_eq!(status(&mapped), 0, "{}", text(&mapped.stderr));
    let file = place.path("m.place.json");
    let mut placement = read_placement(&file).expect("a placement");
    placement.machine.name.push_str(EVIL);
    placement.source.file.push_str(EVIL);
    let threads = placement.threads.iter_mut().map(|t| &mut t.name);
    let regions = placement.regions.iter_mut().map(|r| &mut r.file);
    for text in threads.chain(regions).chain(&mut placement.source.command) {
        text.push_str(EVIL);
    }
    write_placement(&placement, &file).expect("written");
    make_evil(&mut profile);
    write(&profile, &place.path("e.hither")).expect("written");
    fs::copy(
        place.path("p.hither/bursts.bin"),
        place.path("e.hither/bursts.bin"),
    )
    .expect("copy");
    // What serde says of the words of a file.
    let words = serde_json::json!({"format": 1, EVIL: EVIL, "phases": EVIL, "threads": [EVIL]});
    fs::write(place.path("w.place.json"), words.to_string()).expect("write");
    fs::create_dir(place.path("w.hither")).expect("mkdir");
    fs::write(place.path("w.hither/profile.json"), words.to_string()).expect("write");
    let toml = format!(
        "[core]\nname = \"\u{202e}x\"\n\"{}\" = 3\n",
        "\\u001b[2J\u{202e}"
    );
    fs::write(place.path("w.toml"), toml).expect("write");
    let xml =
        "<?xml version=\"1.0\"?><topology version=\"2.0\"><object type=\"\u{202e}\"/></topology>";
    fs::write(place.path("w.xml"), xml).expect("write");
    place
}

#[test]
fn names_steer_no_terminal() {
    let place = evil_place();
    let machine = "--topology 'node:4 core:2 pu:1'";
    let mut lines: Vec<String> = Vec::new();
    for verb in [
        "stat",
        "stat --slices",
        "stat --sites",
        "stat --slices --csv",
    ] {
        lines.push(format!("{verb} {machine} e.hither"));
    }
    for more in [
        "",
        "--json",
        "--text -n 99",
        "-p m.place.json --text",
        "--before p.hither --text",
    ] {
        lines.push(format!(
            "report {more} {} e.hither",
            if more.is_empty() { "-o page.html" } else { "" }
        ));
    }
    for format in [
        "text",
        "env",
        "taskset",
        "numactl",
        "hwloc-bind",
        "likwid-pin",
        "openmpi-rankfile",
        "slurm",
        "json",
    ] {
        lines.push(format!("map --format {format} -o - m.place.json"));
    }
    lines.extend([
        format!("stat --json {machine} e.hither"),
        "stat e.hither p.hither".to_owned(),
        format!("map {machine} --explain -o x e.hither"),
        format!("map {machine} --json e.hither"),
        format!("check {machine} e.hither --fail-on-regression --baseline p.hither"),
        format!("check {machine} p.hither --fail-on-regression --baseline e.hither"),
        format!("sim {machine} --by thread,structure e.hither"),
        format!("sim {machine} -p m.place.json p.hither"),
        format!("sim {machine} --machine w.toml p.hither"),
        "run -v -p m.place.json -- true".to_owned(),
        "run --dry-run -p m.place.json -- true".to_owned(),
        "run -p w.place.json -- true".to_owned(),
        "stat w.hither".to_owned(),
        "report --text w.hither".to_owned(),
        "topo w.xml".to_owned(),
        "topo $(printf 'no\\033[2J\\342\\200\\256such')".to_owned(),
        "stat $(printf 'no\\033[2J\\342\\200\\256such')".to_owned(),
        "trace -- $(printf './no\\033[2J\\342\\200\\256such')".to_owned(),
        "run -p $(printf 'no\\033[2J\\342\\200\\256such') -- true".to_owned(),
        "map --policy $(printf 'no\\033[2J\\342\\200\\256such') e.hither".to_owned(),
    ]);
    let mut broken = Vec::new();
    for line in lines {
        let output = place.shell(&format!("{HITHER} {line}"));
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert!(
            !shown.is_empty() || line.contains("-q"),
            "{line} says nothing"
        );
        // Tabs begin lines of scripts.
        let hidden = |c: char| is_hidden_char(c) && c != '\n' && c != '\t';
        if let Some(at) = shown.find(hidden) {
            let near: String = shown[..at].chars().rev().take(60).collect();
            let near: String = near.chars().rev().collect();
            broken.push(format!(
                "{line}: {:?} after {near:?}",
                shown[at..].chars().next()
            ));
        }
        // Half of the commands must not fail for another reason than the names.
        println!("{} {line}", status(&output));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
