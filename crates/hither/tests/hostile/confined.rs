//! Verbs that only read and write files: what is left to them, should a file get the better of a parser.
use super::*;
use nix::sys::wait::{waitid, Id, WaitPidFlag};
use nix::unistd::{geteuid, Pid};

/// With a profile, made in the shell by `trace` with these options, `p.hither`.
fn place_with_profile(options: &str) -> Place {
    let place = Place::new();
    let program = workload("ring");
    let made = place.shell(&format!("{HITHER} trace -q {options} -o p -- {program} 4"));
    assert_eq!(status(&made), 0, "{}", text(&made.stderr));
    place
}

/// What /proc/PID/status says at the end of a process, after its exit status.
fn rights_at_the_end(mut command: std::process::Command) -> String {
    let quiet = std::process::Stdio::null;
    let mut child = command.stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(pid), ended).unwrap();
    let shown = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kept = ["CapEff:", "NoNewPrivs:", "Seccomp:"];
    let kept = shown
        .lines()
        .filter(|l| kept.iter().any(|k| l.starts_with(k)));
    let kept: Vec<_> = kept.map(|line| line.replace('\t', " ")).collect();
    format!("{}, {}", child.wait().unwrap(), kept.join(", "))
}

#[test]
fn verbs_on_files_can_do_little_else() {
    let place = place_with_profile("");
    // Root may read and write the files of others, and nothing else that only root may.
    let kept = if geteuid().is_root() { 6 } else { 0 };
    for (line, exit_status) in [
        ("stat p.hither --matrix m.csv", 0),
        ("map p.hither -o made", 0),
        ("report p.hither", 0),
        ("check --no first-touch p.hither", 0),
        ("topo", 0),
    ] {
        let words: Vec<_> = [HITHER].into_iter().chain(line.split(' ')).collect();
        assert_eq!(
            rights_at_the_end(place.command(&words)),
            format!("exit status: {exit_status}, CapEff: {kept:016x}, NoNewPrivs: 1, Seccomp: 2"),
            "{line}"
        );
    }
    for made in ["m.csv", "made.place.json", "p.html"] {
        assert!(place.path(made).exists(), "{made}");
    }
}

#[test]
fn outputs_may_be_in_other_folders() {
    let place = place_with_profile("--bursts");
    let written = place.shell(&format!(
        "set -e; mkdir here there; echo '<meta name=\"generator\" content=\"hither report\">' > there/page; \
         ln -s ../there/page here/page.html; cd here; {HITHER} map -o ../there/x.place ../p.hither; \
         {HITHER} sim -o ../there/x ../p.hither; {HITHER} report -o page.html ../p.hither"
    ));
    assert_eq!(status(&written), 0, "{}", text(&written.stderr));
    for made in [
        "there/x.place.json",
        "there/x.sim.json",
        "p.hither/prediction.json",
    ] {
        assert!(place.path(made).exists(), "{made}");
    }
    assert!(fs::metadata(place.path("there/page")).unwrap().len() > 10_000);
    assert!(place.path("here/page.html").is_symlink());
}
