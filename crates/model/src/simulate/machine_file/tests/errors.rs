//! Each thing that cannot be, told with its line and the fix.
use super::*;

/// The X7550's file with a line replaced, refused at that line.
fn check_at(topology: &str, from: &str, to: &str, line_of: &str, part: &str) {
    let whole = text("xeon-x7550x4.toml");
    assert!(whole.contains(from), "{from}");
    let changed = whole.replacen(from, to, 1);
    let error = with(topology, &changed).expect_err(to);
    let line = changed.lines().nth(error.line - 1).unwrap_or_default();
    let message = error.to_string();
    assert!(message.contains(part), "{to}: {message}");
    assert!(
        line.contains(line_of),
        "{to}: line {} is {line:?}: {message}",
        error.line
    );
    let start = format!("machine file mine.toml, line {}: ", error.line);
    assert!(message.starts_with(&start), "{message}");
}

fn check(from: &str, to: &str, part: &str) {
    check_at("xeon-x7550x4", from, to, to, part);
}

#[test]
fn impossible_caches_name_their_line() {
    check("ways = 8", "ways = 0", "write 1 to 1024");
    check("ways = 8", "ways = 64", "pseudo-lru is for at most 32 ways");
    check(
        "ways = 8",
        "ways = 9",
        "no multiple of 9 ways of 64 bytes; change ways or bytes",
    );
    check_at(
        "xeon-x7550x4",
        "bytes = 32768",
        "bytes = 32769",
        "ways = 8",
        "no multiple of 8 ways",
    );
    check_at(
        "xeon-x7550x4",
        "bytes = 32768",
        "bytes = 64",
        "ways = 8",
        "1 lines of 64 bytes, fewer than its 8 ways",
    );
    check(
        "latency_cycles = 10",
        "latency_cycles = 3",
        "no later than L1 below it (4.0)",
    );
    check(
        "latency_ns = 21",
        "latency_ns = 5",
        "L3 answers after 10.0 cycles, no later than L2",
    );
    check(
        "level = 2",
        "level = 1",
        "from the nearest to the core outwards",
    );
    check(
        "level = 3",
        "level = 6",
        "level = 6 is impossible; write 1 to 5",
    );
    check(
        "bytes = 18874368",
        "bytes = 99999999999999",
        "write 1 to 68719476736",
    );
    check(
        "distance = 20",
        "distance = 1",
        "this prefetcher is impossible",
    );
    check(
        "distance = 20",
        "distance = 65",
        "this prefetcher is impossible",
    );
    check(
        "degree = 1 ",
        "degree = 0 ",
        "this prefetcher is impossible",
    );
    check("line = 64", "line = 65", "a power of two from 16 to 4096");
    check_at(
        "xeon-x7550x4",
        "latency_cycles = 4",
        "latency_ns = 2\nlatency_cycles = 4",
        "latency_ns = 2",
        "leave latency_ns or latency_cycles",
    );
    check_at(
        "xeon-x7550x4",
        "latency_cycles = 10\n",
        "",
        "[[cache]]",
        "write latency_ns or latency_cycles",
    );
}

#[test]
fn impossible_numbers_name_their_line() {
    check(
        "frequency_ghz = 2.0",
        "frequency_ghz = 0",
        "from 0.01 to 20",
    );
    check(
        "frequency_ghz = 2.0",
        "frequency_ghz = 1e-308",
        "from 0.01 to 20",
    );
    check("width = 4", "width = 1e-308", "from 0.1 to 64");
    check("misses = 10", "misses = 65536", "write 1 to 1024");
    check(
        "frequency_ghz = 2.0",
        "frequency_ghz = nan",
        "is impossible",
    );
    check(
        "frequency_ghz = 2.0",
        "frequency_ghz = -inf",
        "is impossible",
    );
    check("window = 128", "window = 0", "write 1 to 65536");
    check("window = 128", "window = -1", "invalid value");
    check("static_w = 2.5", "static_w = -1.0", "from 0");
    check("row_bytes = 8192", "row_bytes = 8193", "a power of two");
    check(
        "row_bytes = 8192",
        "row_bytes = 32",
        "a power of two from a line",
    );
    check("channels = 4", "channels = 0", "write 1 to");
    check("channels = 4", "channels = 65536", "write 1 to 1024");
    check_at(
        "xeon-x7550x4",
        "channels = 4",
        "channels = 1024",
        "banks = ",
        "of each of 1024 channels are too many; write at most 16",
    );
    check(
        "megatransfers = 1066",
        "megatransfers = 1e-308",
        "from 10 to 100000",
    );
    check("cl = 7", "cl = 1e6", "from 0 to 1000");
    check(
        "latency_ns = 136",
        "latency_ns = 1e6",
        "latency_ns = 1000000 is impossible; write a number from 0 to 20000",
    );
    check(
        "latency_ns = 136",
        "latency_ns = 30",
        "the last cache takes 42 and the array 68",
    );
    check("bandwidth_gbs = 12.8", "bandwidth_gbs = 0", "from 0.1 to");
    check(
        "bandwidth_gbs = 12.8",
        "bandwidth_gbs = 1e-308",
        "from 0.1 to",
    );
    check("byte_nj = 0.1", "byte_nj = 1e7", "from 0 to 1000000");
}

#[test]
fn what_is_no_machine_file_is_refused() {
    check("ways = 8", "wags = 8", "unknown field `wags`");
    check("ways = 8", "ways = \"eight\"", "invalid type");
    check("ways = 8", "ways = ", "docs/simulation.md lists the keys");
    check(
        "protocol = \"mesi\"",
        "protocol = \"msi\"",
        "unknown variant `msi`",
    );
    check(
        "shape = \"mesh\"",
        "shape = \"cube\"",
        "unknown variant `cube`",
    );
    check(
        "kind = \"stride\"",
        "kind = \"best\"",
        "unknown variant `best`",
    );
    check_at(
        "xeon-x7550x4",
        "channels = 4\n",
        "",
        "[memory]",
        "missing field `channels`",
    );
    check_at(
        "xeon-x7550x4",
        "between = \"packages\"",
        "",
        "[[link]]",
        "missing field `between`",
    );
    let cases = [
        ("", "missing field"),
        ("hello", "docs/simulation.md"),
        ("\0", "docs/simulation.md"),
    ];
    for (text, part) in cases {
        let error = with("core:2 pu:1", text).expect_err(text);
        assert!(error.to_string().contains(part), "{error}");
    }
    let deep = format!("title = {}", "[".repeat(100_000));
    assert!(with("core:2 pu:1", &deep).is_err());
    let long = format!("title = \"{}\"", "x".repeat(super::super::MAX_BYTES));
    let error = with("core:2 pu:1", &long).unwrap_err();
    assert!(error.to_string().contains("larger than"), "{error}");
}

#[test]
fn each_source_must_be_named() {
    let whole = text("locality-balance-table1.toml");
    let source = whole.find("source = \"Table 1: MOESI").unwrap();
    let end = source + whole[source..].find('\n').unwrap();
    let changed = format!("{}source = \" \"{}", &whole[..source], &whole[end..]);
    let error = with("core:2 pu:1", &changed).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("say where these figures come from"),
        "{error}"
    );
    let twice = format!(
        "{whole}\n[[link]]\n{}",
        whole.rsplit("[[link]]").next().unwrap()
    );
    let error = with("core:2 pu:1", &twice).unwrap_err();
    assert!(
        error.to_string().contains("of this kind already"),
        "{error}"
    );
}

#[test]
fn what_does_not_fit_the_topology_is_refused() {
    let whole = "title";
    let title = |topology: &str, line: &str, part: &str| {
        check_at(topology, whole, whole, line, part);
    };
    title(
        "pack:2 l4:1 core:2 pu:1",
        "[[cache]]",
        "add a [[cache]] with level = 4",
    );
    title(
        "pack:2 l3:1(size=1000) core:2 pu:1",
        "ways = 24",
        "fewer than its 24 ways",
    );
    title(
        "pack:2 l3:1(size=100000) core:2 pu:1",
        "ways = 24",
        "no multiple of 24 ways",
    );
    title(
        "pack:4 l3:1(size=19327352832) core:2 pu:1",
        "[[cache]]",
        "can be simulated; write fewer bytes",
    );
    title("pack:300 core:1 pu:1", whole, "simulate a part with --pus");
    check_at(
        "pack:1 l2:2 core:2 pu:1",
        "level = 3",
        "level = 3\ncores = 3",
        "level = 2",
        "would lie in two caches",
    );
}
