//! What root writes and removes where another user can change names.
use super::*;

/// Each way to write a file or folder to a place.
fn writers(at: &str) -> Vec<String> {
    let program = workload("pairs");
    vec![
        format!("{HITHER} trace -q -o {at} -- true"),
        format!("{HITHER} trace -q --bursts -o {at} -- {program} 2 10"),
        format!("{HITHER} run -q --policy compact --export-json {at} -- true"),
        format!("{HITHER} auto -q --no-profile --export-json {at} -- true"),
        format!("{HITHER} auto -q --no-profile --json-lines {at} -- true"),
        format!("{HITHER} auto -q -o {at} -- true"),
        format!("{HITHER} map --force --topology 'pack:2 core:2 pu:1' -o {at} p.hither"),
        format!(
            "{HITHER} map --force --topology 'pack:2 core:2 pu:1' --format likwid-pin -o {at} p.hither"
        ),
        format!("{HITHER} report -o {at} p.hither"),
    ]
}

fn place_with_profile() -> Option<Place> {
    let place = place_of_two()?;
    let traced = place.shell(&format!(
        "{HITHER} trace -q -o p -- {} 2 10",
        workload("pairs")
    ));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    Some(place)
}

#[test]
fn root_writes_nothing_into_a_folder_of_another_user() {
    let Some(place) = place_with_profile() else {
        return;
    };
    for line in writers("stranger/out") {
        let refused = place.shell(&line);
        let told = text(&refused.stderr);
        assert_eq!(status(&refused), 2, "{line}: {told}");
        assert!(told.contains("belongs to user 54321"), "{line}: {told}");
        let inside = fs::read_dir(place.path("stranger")).expect("list").count();
        assert_eq!(inside, 0, "{line}");
    }
}

/// The stranger may be root as they like.
#[test]
fn root_writes_for_who_called_sudo() {
    let Some(place) = place_with_profile() else {
        return;
    };
    let caller = "SUDO_UID=54321 SUDO_GID=54321";
    let written = place.shell(&format!(
        "{caller} {HITHER} report -o stranger/out p.hither"
    ));
    assert_eq!(status(&written), 0, "{}", text(&written.stderr));
}

#[test]
fn root_follows_no_link_that_another_user_planted() {
    let Some(place) = place_with_profile() else {
        return;
    };
    let shared = place.path("shared");
    fs::create_dir(&shared).expect("mkdir");
    set_mode(&shared, 0o1777);
    for name in ["out", "out.hither", "out.place.json"] {
        plant_link(&place.path("secret/data"), &shared.join(name));
    }
    // A folder behind a link is as good as the link.
    plant_link(&place.path("secret"), &shared.join("folder"));
    for at in ["shared/out", "shared/folder/out"] {
        for line in writers(at) {
            let refused = place.shell(&line);
            let told = text(&refused.stderr);
            assert_ne!(status(&refused), 0, "{line}: {told}");
            let kept = fs::read_to_string(place.path("secret/data")).expect("read");
            assert_eq!(kept, "kept\n", "{line}");
            let inside = fs::read_dir(place.path("secret")).expect("list").count();
            assert_eq!(inside, 1, "{line}");
        }
    }
}

/// `/tmp` is such a folder: nobody but its owner renames or removes what is in it.
#[test]
fn root_writes_into_sticky_folders() {
    let Some(place) = place_with_profile() else {
        return;
    };
    let shared = place.path("shared");
    fs::create_dir(&shared).expect("mkdir");
    set_mode(&shared, 0o1777);
    for (number, line) in writers("shared/out").iter().enumerate() {
        let line = line.replace("shared/out", &format!("shared/out{number}"));
        let written = place.shell(&line);
        assert_eq!(status(&written), 0, "{line}: {}", text(&written.stderr));
    }
    let left = fs::read_dir(&shared).expect("list");
    for entry in left.map(|entry| entry.expect("entry")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(name.starts_with("out"), "{name} is left");
    }
}

/// What another user leaves in a sticky folder under the names of our temporary folders.
#[test]
fn what_looks_left_behind_but_is_of_another_user_stays() {
    let Some(place) = place_with_profile() else {
        return;
    };
    let shared = place.path("shared");
    let trap = shared.join(".hither-abcdef");
    fs::create_dir_all(trap.join("profile")).expect("mkdir");
    set_mode(&shared, 0o1777);
    fs::write(trap.join("profile/profile.json"), "theirs").expect("write");
    for path in [&trap, &trap.join("profile")] {
        chown(path, Some(STRANGER), Some(STRANGER)).expect("chown");
        let aged = place.command(&["touch", "-d", "3 hours ago", &path.to_string_lossy()]);
        assert!(run(aged).status.success());
    }
    let traced = place.shell(&format!("{HITHER} trace -q -o shared/out -- true"));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    assert!(trap.join("profile/profile.json").exists());
}

/// The folder's name stands for another one by the time the profile is written and what was
/// temporary is removed.
#[test]
fn a_folder_that_is_swapped_during_the_run_misleads_nobody() {
    let place = Place::new();
    for folder in ["work", "other"] {
        fs::create_dir(place.path(folder)).expect("mkdir");
    }
    // What a program does that it traces is as good as what a stranger does beside it.
    let swap = "name=$(basename work/.hither-*) && mkdir -p other/$name/profile other/$name/old \
                && echo kept > other/$name/profile/profile.json && mv work moved && mv other work";
    fs::write(place.path("swap"), format!("#!/bin/sh\n{swap}\n")).expect("write");
    set_mode(&place.path("swap"), 0o755);
    let traced = place.shell(&format!("{HITHER} trace -q --bursts -o work/out -- ./swap"));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(place.path(folder)).expect("list");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        entries.map(|entry| name(entry.expect("entry"))).collect()
    };
    assert_eq!(names("moved"), ["out.hither"]);
    let bait = names("work");
    assert_eq!(bait.len(), 1, "{bait:?}");
    let inside = place
        .path("work")
        .join(&bait[0])
        .join("profile/profile.json");
    assert_eq!(fs::read_to_string(inside).expect("read"), "kept\n");
}

/// A program of another user makes up who owns what: it calls everything root's. The same from
/// where its mount is not known, through the folder of a process that sees it.
#[test]
fn root_writes_nothing_where_another_users_program_serves_the_files() {
    let place = Place::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/serve.c");
    let built = place.shell(&format!("gcc -O1 -o serve {source}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    fs::create_dir(place.path("served")).expect("mkdir");
    let serve = |user: u32, line: &str| {
        let user = user.to_string();
        run(place.command(&["./serve", "served", &user, line]))
    };
    let tried = serve(STRANGER, "true");
    if status(&tried) == 125 {
        println!("skipped: no FUSE here: {}", text(&tried.stderr));
        return;
    }
    let (here, us) = (place.0.path().display(), std::process::id());
    let inside = format!("{HITHER} trace -q -o served/out -- true");
    let outside = format!(
        "nsenter -m -t {us} {HITHER} trace -q -o /proc/$PPID/root{here}/served/out -- true"
    );
    for (line, who) in [
        (&inside, STRANGER.to_string()),
        (&outside, "unknown in this mount name space".to_owned()),
    ] {
        let refused = serve(STRANGER, line);
        let told = text(&refused.stderr);
        assert_eq!(status(&refused), 2, "{line}: {told}");
        let served = told.contains("is served by a program of");
        assert!(served && told.contains(&who), "{line}: {told}");
    }
    // Root's own is a folder like others: here it has no room for files.
    let own = serve(0, &inside);
    assert!(!text(&own.stderr).contains("is served by"), "{own:?}");
}
