//! The packages of `make dist`, of the development build: each is unpacked by a user without
//! rights into a root folder that has busybox and the libraries that the package declares,
//! nothing else, and traces, reports and maps there.
#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use common::{run, workload, HITHER};
use hither_guest::GuestRoot;
use tempfile::TempDir;

/// Makes both packages once.
fn packages() -> &'static Path {
    static PACKAGES: OnceLock<TempDir> = OnceLock::new();
    let folder = PACKAGES.get_or_init(|| {
        let folder = tempfile::tempdir().expect("tempdir");
        let mut xtask = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        xtask.args(["xtask", "dist", "--hither", HITHER, "--to"]);
        xtask.arg(folder.path());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let done = run(on_pipes(xtask.current_dir(root)));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        folder
    });
    folder.path()
}

fn on_pipes(command: &mut Command) -> Command {
    command.stdin(Stdio::null());
    std::mem::replace(command, Command::new("true"))
}

fn package(end: &str) -> PathBuf {
    let mut files = fs::read_dir(packages()).expect("packages");
    let file = files.find_map(|file| {
        let path = file.expect("file").path();
        let name = path.file_name()?.to_str()?.to_owned();
        (name.starts_with("hither") && name.ends_with(end)).then_some(path)
    });
    file.unwrap_or_else(|| panic!("no package *{end}"))
}

fn output(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).output();
    let out = out.unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(out.status.success(), "{program} {arguments:?}: {out:?}");
    String::from_utf8(out.stdout).expect("text")
}

/// The host's file for a library that a program asks for by this name.
fn library(name: &str) -> PathBuf {
    let cache = output("/sbin/ldconfig", &["-p"]);
    let mut lines = cache.lines().filter(|line| line.contains("x86-64"));
    let line = lines.find(|line| line.split_whitespace().next() == Some(name));
    let file = line.and_then(|line| line.split_once(" => "));
    PathBuf::from(file.unwrap_or_else(|| panic!("{name} is not installed")).1)
}

/// The libraries of the packages that a field `Depends` names, and of those they depend on.
fn libraries_of(depends: &str) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut names = packages_of(depends);
    while let Some(name) = names.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let installed = Command::new("dpkg-query").args(["-L", &name]).output();
        // A virtual package, or one for a choice that was not made.
        let Ok(list) = installed.map(|out| String::from_utf8_lossy(&out.stdout).into_owned())
        else {
            continue;
        };
        let libraries = list.lines().filter(|file| file.contains(".so"));
        files.extend(libraries.map(PathBuf::from).filter(|file| file.is_file()));
        let fields = ["-W", "-f", "${Depends}, ${Pre-Depends}", &name];
        let depends = Command::new("dpkg-query").args(fields).output();
        let depends = depends.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
        names.extend(packages_of(&depends.unwrap_or_default()));
    }
    files
}

/// `libc6 (>= 2.36), a | b` -> libc6, a
fn packages_of(depends: &str) -> Vec<String> {
    let names = depends.split(',').filter_map(|one| {
        let name = one.split(['|', '(', ':']).next()?.trim();
        (!name.is_empty()).then(|| name.to_owned())
    });
    names.collect()
}

/// A root folder with busybox, these libraries, a package, and a program to trace.
fn root(libraries: impl IntoIterator<Item = PathBuf>, package: &Path) -> TempDir {
    let folder = tempfile::tempdir().expect("tempdir");
    let mut root = GuestRoot::new().expect("busybox");
    for library in libraries {
        root.copy(&library, &library).expect("library");
    }
    root.lay_out(folder.path()).expect("root");
    let home = folder.path().join("home/user");
    fs::copy(package, home.join(package.file_name().expect("name"))).expect("package");
    fs::copy(workload("pairs"), home.join("pairs")).expect("pairs");
    folder
}

/// Runs a script in the root as a user with no rights, there or outside. `None` where the
/// kernel or a container forbids name spaces; a line on stderr has said so then.
fn inside(root: &Path, script: &str) -> Option<String> {
    let enter = r#"mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" || exit 99
        exec unshare --user --map-user=1000 --map-group=1000 --root="$0" --wd=/home/user \
          env -i HOME=/home/user PATH=/usr/bin OMP_NUM_THREADS=2 /bin/sh -ec "$1""#;
    let mut words = vec![
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        enter,
    ];
    if nix::unistd::geteuid().is_root() {
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        words.splice(0..0, [&["setpriv"][..], &nobody].concat());
        output(
            "chown",
            &["-R", "65534:65534", root.to_str().expect("path")],
        );
    }
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(root).arg(script);
    let done = run(on_pipes(&mut command));
    let said = String::from_utf8_lossy(&done.stderr);
    let forbidden = done.status.code() == Some(99) || said.starts_with("unshare: ");
    if forbidden {
        eprintln!("skipped: name spaces are forbidden here: {said}");
        return None;
    }
    assert!(done.status.success(), "{done:?}");
    Some(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// What is done in both; `hither` is on the PATH and `share` is its folder.
const SESSION: &str = r#"
    test "$(id -u)" = 1000
    grep -q '^CapEff:	0000000000000000$' /proc/self/status
    hither --version
    hither doctor > doctor.txt || { cat doctor.txt; exit 1; }
    hither trace -q -o app -- ./pairs 4 2 50 64
    hither report app.hither
    grep -q '</html>' app.html
    hither map app.hither --force --topology xeon-x7550x4 --explain
    hither map app.place.json --format numactl
    for verb in trace map report; do ls $share/man/man1/hither-$verb.1*; done
    ls $share/bash-completion/completions/hither
    for file in LICENSE-MIT LICENSE-APACHE THIRD-PARTY.md LICENSE-DynamoRIO LICENSES-crates.txt guide.md; do
      test -s $share/doc/hither/$file
    done
"#;

fn check(said: &str) {
    let version = concat!("hither ", env!("CARGO_PKG_VERSION"), "\n");
    for part in [version, "4 threads on xeon-x7550x4", "hither-trace.1"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}

#[test]
fn the_tarball_needs_the_libraries_that_its_readme_names() {
    let tarball = package(".tar.gz");
    let name = tarball.file_name().expect("name").to_str().expect("text");
    let name = name.trim_end_matches(".tar.gz");
    let readme = format!("{name}/README.md");
    let readme = output("tar", &["-xzOf", tarball.to_str().expect("path"), &readme]);
    let libraries = readme.lines().filter_map(|line| {
        let name = line.strip_prefix("- `")?.strip_suffix('`')?;
        name.contains(".so").then(|| library(name))
    });
    let libraries: Vec<PathBuf> = libraries.collect();
    assert!(libraries.len() > 3, "{readme}");
    let root = root(libraries, &tarball);
    let unpack = format!(
        "tar -xzf {name}.tar.gz; rm {name}.tar.gz
         PATH=$PWD/{name}/bin:$PATH; share=$PWD/{name}/share"
    );
    let Some(said) = inside(root.path(), &(unpack + SESSION)) else {
        return;
    };
    check(&said);
    let tree = root.path().join("home/user").join(name);
    for file in [
        "bin/hither",
        "lib/hither/libdynamorio.so",
        "lib/hither/libhither_tracer.so",
    ] {
        let sections = output("objdump", &["-h", tree.join(file).to_str().expect("path")]);
        assert!(!sections.contains(".debug_info"), "{file}:\n{sections}");
    }
}

#[test]
fn the_debian_package_needs_the_packages_that_it_names() {
    let deb = package(".deb");
    let depends = output("dpkg-deb", &["-f", deb.to_str().expect("path"), "Depends"]);
    for name in ["libc6", "libhwloc15", "libscotch"] {
        assert!(depends.contains(name), "{depends}");
    }
    let root = root(libraries_of(&depends), &deb);
    let name = deb.file_name().expect("name").to_str().expect("text");
    let unpack = format!("dpkg-deb -x {name} /; rm {name}; share=/usr/share");
    let more = "zcat $share/doc/hither/changelog.gz | grep -q '^## '
        ls $share/zsh/vendor-completions/_hither; grep -q MIT $share/doc/hither/copyright";
    let Some(said) = inside(root.path(), &(unpack + SESSION + more)) else {
        return;
    };
    check(&said);
}
