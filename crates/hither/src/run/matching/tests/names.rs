use super::super::file_names::*;

#[test]
fn names_without_what_changes() {
    let check = |path: &str, expected: &str| assert_eq!(skeleton(path), expected, "{path}");
    check(
        "/dev/shm/vader_segment.vm.0.57ac0001.3",
        "/dev/shm/vader_segment.vm.#.#.#",
    );
    check(
        "/tmp/ompi.vm.0/pid.15186/ds21_15186/smseg-1470889985-0",
        "/tmp/ompi.vm.#/pid.#/ds#_#/smseg-#-#",
    );
    check("/dev/shm/data (deleted)", "/dev/shm/data");
    check("/a/b", "/a/b");
    check("", "");
    check("/x/ä1é", "/x/ä#é");
}

#[test]
fn numbers_in_common() {
    let own = "/dev/shm/vader_segment.vm.0.57ac0001.3";
    assert_eq!(
        common_numbers(own, "/dev/shm/vader_segment.vm.0.11110001.3"),
        2
    );
    assert_eq!(
        common_numbers(own, "/dev/shm/vader_segment.vm.0.11110001.2"),
        1
    );
    assert_eq!(common_numbers(own, own), 3);
}

#[test]
fn bytes_for_people() {
    let check = |length, expected: &str| assert_eq!(format_size(length), expected);
    check(12, "12 bytes");
    check(4096, "4 KiB");
    check(64 << 20, "64 MiB");
    check((64 << 20) + (1 << 19), "64.5 MiB");
    check(3 << 30, "3 GiB");
}

#[test]
fn last_parts() {
    assert_eq!(
        (file_name("/usr/bin/app"), file_name("app"), file_name("")),
        ("app", "app", "")
    );
    assert_eq!(without_deleted("/memfd:x (deleted)"), "/memfd:x");
}
