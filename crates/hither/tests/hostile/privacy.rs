//! What a profile, and what is made of it, says to whom.
use super::*;
use hither_profile::Profile;

const PROGRAM: &str = "#include <stdlib.h>\nstatic double table[1 << 16];\nint main(void) {\n  \
    double *block = calloc(1 << 16, 8);\n  for (int i = 0; i < 1 << 16; i++) table[i] = block[i] + i;\n  \
    return table[77] != 77;\n}\n";
/// What nobody else is to know.
const PRIVATE: [&str; 4] = [
    "hush-hush",
    "calloc(1 << 16, 8)",
    "quiet-cat",
    "deep-folder",
];

/// A program in a folder of its own, on a host of a name of its own where we may give it one.
fn place_with_program() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("deep-folder")).expect("mkdir");
    fs::write(place.path("deep-folder/app.c"), PROGRAM).expect("write");
    let source = place.path("deep-folder/app.c");
    let built = place.shell(&format!(
        "gcc -g -O1 -o deep-folder/app {}",
        source.display()
    ));
    assert!(built.status.success(), "{}", text(&built.stderr));
    place
}

fn on_named_host(place: &Place, line: &str) -> std::process::Output {
    let named = format!("hostname quiet-cat 2>/dev/null; {line}");
    let output = place.shell(&format!("unshare -u sh -c '{named}' 2>err"));
    match output.status.success() {
        true => output,
        // Without root the host keeps its name, which is not looked for then.
        false => place.shell(line),
    }
}

fn traced(place: &Place, options: &str) -> Profile {
    let line =
        format!("{HITHER} trace -q {options} -o p -- ./deep-folder/app --password=hush-hush");
    let output = on_named_host(place, &line);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    hither_profile::read(&place.path("p.hither")).expect("a profile")
}

#[test]
fn what_is_written_is_for_its_user_alone() {
    let place = place_with_program();
    let topology = "--topology 'pack:2 core:2 pu:1'";
    let lines = [
        format!("{HITHER} trace -q --full -o p -- ./deep-folder/app"),
        format!("{HITHER} auto -q -o a --export-json a.json --json-lines a.lines -- true"),
        format!("{HITHER} run -q --policy compact --export-json r.json -- true"),
        format!("{HITHER} map --force {topology} -o m p.hither"),
        format!("{HITHER} map --force {topology} --format likwid-pin -o f p.hither"),
        format!("{HITHER} sim {topology} -o s p.hither"),
        format!("{HITHER} report -o page.html p.hither"),
    ];
    for line in lines {
        let output = place.shell(&format!("umask 022; {line}"));
        assert_eq!(status(&output), 0, "{line}: {}", text(&output.stderr));
    }
    let folders = ["p.hither", "a.hither"].map(|name| place.path(name));
    let inside = folders.iter().flat_map(|f| fs::read_dir(f).expect("list"));
    let mut files: Vec<_> = inside.map(|entry| entry.expect("entry").path()).collect();
    assert!(files.len() > 30, "{files:?}");
    let single = [
        "a.json",
        "a.lines",
        "r.json",
        "m.place.json",
        "f",
        "s.sim.json",
        "page.html",
    ];
    files.extend(single.map(|name| place.path(name)));
    for folder in folders {
        assert_eq!(mode(&folder), 0o700, "{folder:?}");
    }
    for file in files {
        assert_eq!(mode(&file), 0o600, "{file:?}");
    }
}

#[test]
fn a_stricter_umask_is_honoured() {
    let place = place_with_program();
    let line = format!("umask 0277; {HITHER} run -q --policy compact --export-json r.json -- true");
    let output = place.shell(&line);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    assert_eq!(mode(&place.path("r.json")), 0o400);
}

#[test]
fn a_redacted_profile_and_its_page_say_nothing_private() {
    let place = place_with_program();
    let open = format!("{:?}", traced(&place, ""));
    let known = PRIVATE.iter().filter(|private| open.contains(**private));
    // All are found where nothing is taken out, but for the host's name that is not ours to give.
    assert!(known.count() >= 3, "{open}");
    let reports = ["-o page.html", "--text", "--json"];
    for report in reports {
        let line = format!("{HITHER} report --redact {report} p.hither; cat page.html 2>/dev/null");
        let output = place.shell(&line);
        let shown = text(&output.stdout);
        assert!(shown.len() > 1000, "{shown}{}", text(&output.stderr));
        for private in PRIVATE {
            assert!(!shown.contains(private), "{report}: {private}");
        }
        assert!(shown.contains("app.c"), "{report}: files keep their names");
    }
    let kept = format!("{:?}", traced(&place, "--redact"));
    for private in PRIVATE {
        assert!(!kept.contains(private), "{private}");
    }
    assert!(kept.contains("app.c") && kept.contains("table"), "{kept}");
}

#[test]
fn a_profile_does_not_say_where_the_kernel_put_a_program() {
    let place = place_with_program();
    let highest = |profile: &Profile| profile.regions.iter().map(|r| r.address).max();
    let traced = traced(&place, "");
    assert!(highest(&traced) > Some(0) && highest(&traced) < Some(1 << 40));
    let line = format!("{HITHER} auto -q -o a -- ./deep-folder/app");
    let output = place.shell(&line);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let observed = hither_profile::read(&place.path("a.hither")).expect("a profile");
    assert!(highest(&observed) < Some(1 << 40));
}

#[test]
fn a_profile_without_source_quotes_none() {
    let place = place_with_program();
    let quoted = |profile: &Profile| format!("{profile:?}").contains("calloc(1 << 16, 8)");
    assert!(quoted(&traced(&place, "")));
    let without = traced(&place, "--no-source");
    assert!(without.source_text.is_empty() && !quoted(&without));
    // Places keep their names.
    let table = without.objects.iter().find(|o| o.name == "table");
    let table = table.expect("a structure");
    assert!(table.file.ends_with("app.c"), "{}", table.file);
    assert_eq!(table.line, 2);
}
