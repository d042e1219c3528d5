use super::*;
use std::os::unix::fs::symlink;

fn strings(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
}

/// `expected`: interpreter and argument.
#[track_caller]
fn check_line(head: &[u8], expected: Option<(&str, Option<&str>)>) {
    let expected = expected.map(|(interpreter, argument)| ScriptLine {
        interpreter: interpreter.into(),
        argument: argument.map(OsString::from),
    });
    assert_eq!(parse_script_line(head), expected);
}

#[test]
fn first_lines_are_read_as_the_kernel_does() {
    check_line(b"#!/bin/sh\n", Some(("/bin/sh", None)));
    check_line(b"#! /bin/sh -e \necho", Some(("/bin/sh", Some("-e"))));
    check_line(
        b"#!\t/usr/bin/env  python3 -u x\n",
        Some(("/usr/bin/env", Some("python3 -u x"))),
    );
    check_line(b"#!/bin/sh", Some(("/bin/sh", None)));
    check_line(b"#!/bin/sh\r\n", Some(("/bin/sh\r", None)));
    check_line(b"#!\n", None);
    check_line(b"#!   ", None);
    check_line(b"echo no first line\n", Some(("/bin/sh", None)));
    check_line(b"\x00\x01binary", None);
}

#[test]
fn long_first_lines_are_cut_in_the_argument_only() {
    let long = "x".repeat(SCRIPT_HEAD_BYTES);
    let head = |text: String| text.as_bytes()[..SCRIPT_HEAD_BYTES].to_vec();
    check_line(&head(format!("#!/{long}")), None);
    let argument = "x".repeat(SCRIPT_HEAD_BYTES - "#!/bin/sh ".len());
    check_line(
        &head(format!("#!/bin/sh {long}")),
        Some(("/bin/sh", Some(&argument))),
    );
}

fn write(path: &Path, content: &[u8], mode: u32) {
    fs::write(path, content).expect("write");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().expect("tempdir"))
    }

    fn file(&self, name: &str, content: &[u8], mode: u32) -> String {
        let path = self.0.path().join(name);
        write(&path, content, mode);
        path.to_str().expect("path").to_string()
    }
}

#[track_caller]
fn check_refused(program: &str, status: u8, part: &str) {
    let error = resolve_target(&strings(&[program]), None).expect_err("must be refused");
    assert_eq!(error.status(), status, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn a_plain_program_keeps_its_arguments() {
    let target = resolve_target(&strings(&["ls", "-l"]), Some(OsStr::new("/nowhere:/bin")));
    let target = target.expect("ls");
    assert_eq!(target.executable, Path::new("/bin/ls"));
    assert_eq!(target.argv, strings(&["ls", "-l"]));
    assert_eq!(target.name, "ls");
}

#[test]
fn scripts_become_calls_of_their_interpreters() {
    let f = Folder::new();
    let inner = f.file("inner", b"#!/bin/sh -e\n", 0o755);
    let outer = f.file("outer", format!("#!{inner} -x y\n").as_bytes(), 0o755);
    let target = resolve_target(&strings(&[&outer, "a"]), None).expect("script");
    assert_eq!(target.executable, Path::new("/bin/sh"));
    let expected = ["/bin/sh", "-e", &inner, "-x y", &outer, "a"];
    assert_eq!(target.argv, strings(&expected));
    assert_eq!(target.name, "outer");
}

#[test]
fn a_script_found_in_the_path_is_passed_by_its_path() {
    let f = Folder::new();
    let script = f.file("tool", b"#!/bin/sh\n", 0o755);
    let target = resolve_target(&strings(&["tool"]), Some(f.0.path().as_os_str())).expect("script");
    assert_eq!(target.argv, strings(&["/bin/sh", &script]));
}

#[test]
fn what_does_not_exist_is_127() {
    let f = Folder::new();
    check_refused("no-such-program-here", 127, "no such program");
    check_refused("/no/such/path", 127, "no such program");
    check_refused("", 127, "no such program");
    let script = f.file("script", b"#!/no/such/shell\n", 0o755);
    check_refused(&script, 127, "interpreter /no/such/shell does not exist");
}

#[test]
fn what_cannot_be_executed_is_126() {
    let f = Folder::new();
    check_refused("/usr", 126, "is a folder");
    check_refused(
        &f.file("plain", b"#!/bin/sh\n", 0o644),
        126,
        "not executable",
    );
    check_refused(
        &f.file("junk", b"\0\0\0", 0o755),
        126,
        "neither a program nor a script",
    );
    check_refused(&f.file("cut", b"\x7fELF\x02\x01", 0o755), 126, "complete");
    let looped = f.0.path().join("loop");
    let line = format!("#!{}\n", looped.display());
    check_refused(&f.file("loop", line.as_bytes(), 0o755), 126, "levels");
}

#[test]
fn the_search_goes_on_after_files_that_may_not_be_executed() {
    let f = Folder::new();
    f.file("ls", b"", 0o644);
    let path = format!("{}:/bin", f.0.path().display());
    let target = resolve_target(&strings(&["ls"]), Some(OsStr::new(&path))).expect("ls");
    assert_eq!(target.executable, Path::new("/bin/ls"));
    let error = resolve_target(&strings(&["ls"]), Some(f.0.path().as_os_str())).expect_err("none");
    assert_eq!(error.status(), 126);
}

/// The header of an ELF file, as far as it tells what it is for.
fn header(class: u8, data: u8, kind: u8, machine: u8) -> Vec<u8> {
    let mut h = vec![0; 64];
    h[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, data]);
    let low = usize::from(data == 2);
    h[16 + low] = kind;
    h[18 + low] = machine;
    h[54] = 56;
    h
}

#[test]
fn programs_for_other_machines_are_refused() {
    let f = Folder::new();
    let check = |name, head: Vec<u8>, part| check_refused(&f.file(name, &head, 0o755), 2, part);
    check("i386", header(1, 1, 2, 3), "32-bit x86");
    check("x32", header(1, 1, 2, 62), "32-bit x86");
    check("arm", header(2, 1, 3, 183), "64-bit ARM");
    check("power", header(2, 2, 3, 21), "64-bit POWER");
    check("odd", header(2, 1, 3, 250), "ELF number 250");
    let object = f.file("object.o", &header(2, 1, 1, 62), 0o755);
    check_refused(&object, 126, "neither");
}

#[test]
fn privileged_programs_are_refused() {
    let f = Folder::new();
    let ls = fs::read("/bin/ls").expect("ls");
    check_refused(&f.file("suid", &ls, 0o4755), 2, "set-user-id");
    check_refused(&f.file("sgid", &ls, 0o2755), 2, "set-group-id");
    let plain = f.file("plain", &ls, 0o755);
    assert!(resolve_target(&strings(&[&plain]), None).is_ok());
}

#[test]
fn links_are_not_resolved_in_the_name() {
    let f = Folder::new();
    let link = f.0.path().join("my-ls");
    symlink("/bin/ls", &link).expect("symlink");
    let target = resolve_target(&strings(&[link.to_str().expect("path")]), None).expect("link");
    assert_eq!(target.executable, link);
    assert_eq!(target.name, "my-ls");
}
