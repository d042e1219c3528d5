//! Files that people send each other, each read by all that reads it.
use super::*;

/// Copies the corpus's profile, with one file of it changed, if its name fits.
fn profile(trial: &mut Trial, changes: impl Fn(&str) -> bool) {
    let names = copy_profile(trial, None);
    let fitting: Vec<String> = names.into_iter().filter(|name| changes(name)).collect();
    let changed = format!("p.hither/{}", trial.mutator.pick(&fitting));
    let bytes = fs::read(trial.path(&changed)).expect("a copy");
    let bytes = trial.mutator.mutate(&bytes);
    trial.write(&changed, &bytes);
}

/// Copies the corpus's profile, made on a machine of this topology; the names of its files.
fn copy_profile(trial: &Trial, topology: Option<String>) -> Vec<String> {
    fs::create_dir(trial.path("p.hither")).expect("mkdir");
    let mut names = Vec::new();
    for entry in fs::read_dir(corpus("profile")).expect("corpus") {
        let entry = entry.expect("entry");
        let name = entry.file_name().into_string().expect("a name");
        fs::copy(entry.path(), trial.path("p.hither").join(&name)).expect("copy");
        names.push(name);
    }
    names.sort();
    if let Some(topology) = topology {
        let json = fs::read(trial.path("p.hither/profile.json")).expect("profile.json");
        let mut json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
        *find(&mut json, "topology_xml").expect("a topology") = topology.into();
        trial.write("p.hither/profile.json", json.to_string().as_bytes());
    }
    names
}

/// The first member of this name, however deep.
fn find<'a>(json: &'a mut serde_json::Value, name: &str) -> Option<&'a mut serde_json::Value> {
    let members = json.as_object_mut()?;
    if members.contains_key(name) {
        return members.get_mut(name);
    }
    members.values_mut().find_map(|member| find(member, name))
}

fn one_of(trial: &mut Trial, lines: &[&str]) -> Result<(), String> {
    let line = *trial.mutator.pick(lines);
    let words: Vec<&str> = line.split_whitespace().collect();
    let checked = trial.check(&words);
    checked.map_err(|why| format!("hither {line}: {why}"))
}

#[test]
fn profiles() {
    fuzz("profile", |trial| {
        profile(trial, |name| name != "bursts.bin");
        one_of(
            trial,
            &[
                "stat p.hither",
                "stat --sites --slices --json p.hither",
                "report --text p.hither",
                "report -o page.html p.hither",
                "report --redact -o page.html p.hither",
                "check p.hither",
                "stat p.hither p.hither",
                "map --topology xeon-x7550x4 -o x p.hither",
                "map --topology xeon-e5-2650x2 --phases -o x p.hither",
            ],
        )
    });
}

#[test]
fn recordings() {
    fuzz("bursts", |trial| {
        profile(trial, |name| name == "bursts.bin");
        one_of(
            trial,
            &[
                "sim --topology xeon-e5-2650x2 --policy scatter --seeds 1 p.hither",
                "sim --topology xeon-e5-2650x2 --policy scatter --seeds 1 --pages replay --by structure p.hither",
                "report --text p.hither",
            ],
        )
    });
}

/// A file of the corpus, changed.
fn changed(trial: &mut Trial, from: &Path, to: &str) {
    let bytes = fs::read(from).unwrap_or_else(|e| panic!("{from:?}: {e}"));
    let bytes = trial.mutator.mutate(&bytes);
    trial.write(to, &bytes);
}

#[test]
fn placements() {
    fuzz("placement", |trial| {
        changed(trial, &corpus("placement.json"), "a.place.json");
        copy_profile(trial, None);
        one_of(
            trial,
            &[
                "map a.place.json --format env",
                "map a.place.json --format text",
                "map a.place.json --format taskset",
                "map a.place.json --format likwid-pin",
                "map a.place.json --format hwloc-bind",
                "run --dry-run -p a.place.json -- true",
                "run -p a.place.json -- true",
                "report --text -p a.place.json p.hither",
                "check -p a.place.json p.hither",
            ],
        )
    });
}

#[test]
fn predictions() {
    fuzz("prediction", |trial| {
        changed(trial, &corpus("profile/prediction.json"), "s.sim.json");
        copy_profile(trial, None);
        one_of(
            trial,
            &[
                "report --text --prediction s.sim.json p.hither",
                "report --prediction s.sim.json -o page.html p.hither",
            ],
        )
    });
}

/// Files of a folder of the repository.
fn shipped(folder: &str, extension: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    files_in(&root.join(folder), extension)
}

fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("entry").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    paths.sort();
    paths
}

#[test]
fn machine_files() {
    let files = shipped("machines", "toml");
    fuzz("machine", |trial| {
        let file = trial.mutator.pick(&files).clone();
        changed(trial, &file, "machine.toml");
        copy_profile(trial, None);
        one_of(
            trial,
            &["sim --machine machine.toml --topology xeon-e5-2650x2 --policy scatter --seeds 1 p.hither"],
        )
    });
}

/// Alone and in a profile.
#[test]
fn topologies() {
    let mut files = shipped("topologies", "xml");
    files.extend(files_in(&corpus("topologies"), "xml"));
    fuzz("topology", |trial| {
        let file = trial.mutator.pick(&files).clone();
        changed(trial, &file, "m.xml");
        let embedded = trial.mutator.below(3) == 0;
        if embedded {
            let bytes = fs::read(trial.path("m.xml")).expect("m.xml");
            copy_profile(trial, Some(String::from_utf8_lossy(&bytes).into_owned()));
            let lines = [
                "stat p.hither",
                "report --text p.hither",
                "map -o x p.hither",
            ];
            return one_of(trial, &lines);
        }
        let lines = [
            "topo m.xml",
            "topo --json --all m.xml",
            "topo --xml m.xml",
            "map --topology m.xml --matrix m.csv -o x",
        ];
        trial.write("m.csv", b"0,5,1\n5,0,2\n1,2,0\n");
        one_of(trial, &lines)
    });
}

#[test]
fn matrices() {
    const MATRICES: [&str; 3] = [
        "0,5,1,7\n5,0,2,0\n1,2,0,3\n7,0,3,0\n",
        "0 1 5\n1 2 7\n0 3 9\n",
        "# threads\n0;5\n5;0\n",
    ];
    fuzz("matrix", |trial| {
        let base = trial.mutator.pick(&MATRICES).as_bytes();
        let bytes = trial.mutator.mutate(base);
        trial.write("m.csv", &bytes);
        let lines = [
            "map --topology xeon-e5-2650x2 --matrix m.csv -o x",
            "map --topology xeon-e5-2650x2 --matrix m.csv --policy locality --load m.csv -o x",
            "map --topology xeon-x7550x4 --matrix m.csv --policy joint -o x",
        ];
        one_of(trial, &lines)
    });
}
