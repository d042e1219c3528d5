//! Programs from Debian, and small ones that do what tracers trip over.
use super::*;
use hither_profile::RegionKind;

#[test]
fn threads_in_all_ways() {
    check(&[&built("abuse"), "threads"], 1, 5);
    check(&[&built("abuse-static"), "threads"], 1, 5);
}

#[test]
fn processes_in_all_ways() {
    for program in ["abuse", "abuse-static"] {
        check(&[&built(program), "fork"], 13, 13);
        check(&[&built(program), "vfork"], 12, 12);
        check(&[&built(program), "group"], 2, 2);
        check(&[&built(program), "exec"], 2, 6);
    }
}

#[test]
fn signals() {
    for program in ["abuse", "abuse-static"] {
        check(&[&built(program), "alarm"], 1, 1);
        check(&[&built(program), "segv"], 1, 1);
        check(&[&built(program), "guard"], 1, 1);
    }
}

/// In each copy of a block the tracer keeps other values in the program's registers.
#[test]
fn registers_at_a_fault() {
    let program = built("abuse");
    let native = run(Place::new().command(&[&program, "registers"]));
    assert!(text(&native.stdout).ends_with(" 0 wrong\n"));
    for option in ["--slice=10ms", "--sample", "--bursts=1ms/2ms", "--full"] {
        let place = Place::new();
        let line = ["trace", "-q", "-o", "traced", option, "--"];
        let traced = [&[HITHER], &line[..], &[&program, "registers"]].concat();
        let traced = run(place.command(&traced));
        assert_eq!(text(&traced.stdout), text(&native.stdout), "{option}");
    }
}

#[test]
fn exceptions_and_libraries_that_come_and_go() {
    check(&[&built("throws")], 1, 5);
}

/// Blocks are told apart, not the allocator's pool: of a stripped library as oneTBB's, and of jemalloc in the program
/// itself, which does not export it.
#[test]
fn blocks_of_allocators_with_names_of_their_own() {
    for program in ["exported", "linked"] {
        let profile = check(&[&built(program)], 1, 1);
        for (name, words) in [("first", 100_000), ("second", 200_000)] {
            let block = profile.objects.iter().find(|o| o.name == name);
            let block = block.map(|o| (o.size, o.writes));
            assert_eq!(block, Some((8 * words, words)), "{program}: {name}");
        }
    }
}

/// DuckDB is linked so: all of its tables and columns were one mapping of jemalloc's. Of small blocks it is not seen who
/// gives them back, so that they count for nobody rather than for who had the memory first.
#[test]
fn blocks_of_an_allocator_that_is_partly_in_its_callers() {
    let profile = check(&[&built("inlined")], 1, 1);
    for (name, words) in [("first", 100_000), ("second", 200_000)] {
        let block = profile.objects.iter().find(|o| o.name == name);
        let block = block.map(|o| (o.size, o.writes));
        assert_eq!(block, Some((8 * words, words)), "{name}");
    }
    let small = profile.objects.iter().find(|o| o.name == "small");
    assert!(small.is_none(), "{small:?}");
}

/// As patchelf leaves many libraries of Python wheels. The tracer crashed there, or found none of its functions.
#[test]
fn libraries_whose_tables_were_moved() {
    let profile = check(&[&built("tables")], 1, 1);
    let openmp_barriers: u64 = profile.slices.iter().map(|slice| slice.sync[1]).sum();
    assert_eq!(openmp_barriers, 7);
}

#[test]
fn address_spaces_that_change() {
    check(&[&built("abuse"), "mmap"], 1, 1);
    check(&[&built("abuse"), "mremap"], 1, 1);
    check(&[&built("abuse"), "brk"], 1, 1);
    // vfork and exec, then fork and exec.
    let program = built("abuse");
    let children = format!("{program} brk; {program} brk | cat; true");
    check(&["sh", "-c", &children], 4, 1);
}

/// MariaDB reserves 8 TiB and gives them back at its end, which took 10 s. What is moved took memory for each page.
#[test]
fn reserved_address_space_costs_nothing() {
    let place = Place::new();
    let program = built("reserved");
    let line = [&LIMITED[..], &["-o", "traced", "--", &program]].concat();
    let traced = run(place.command(&line));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let profile = place.profile();
    let pages = profile.pages.iter();
    let mapped = pages.filter(|u| profile.regions[u.region.at()].kind == RegionKind::Mmap);
    let writes: u64 = mapped.map(|u| u.writes).sum();
    // And some of ld.so's.
    let made = 4 * 8 * 512;
    assert!((made..made + 2000).contains(&writes), "{writes}");
}

/// Under filters that would not let the tracer itself go on.
#[test]
fn programs_that_forbid_themselves_system_calls() {
    for case in [
        "errors", "ended", "traps", "strict", "several", "wrong", "inherit",
    ] {
        check(&[&built("filters"), case], 1, 1);
    }
}

/// Python's subprocess does so before each exec; it took minutes.
#[test]
fn closing_all_descriptors() {
    check(&[&built("abuse"), "closing"], 1, 1);
}

/// MariaDB could not be stopped, and POV-Ray did not end.
#[test]
fn signals_that_a_thread_waits_for() {
    check(&[&built("sigwait")], 21, 23);
}

/// Of every ten to twenty signals one was lost, also SIGTERM.
#[test]
fn signals_beside_threads_that_start_and_end() {
    check(&[&built("short_lived")], 151, 1000);
}

/// Of ten one came twice, said that the program had sent it itself, or was lost, and most runs crashed: the main thread
/// went on where the signal had come.
#[test]
fn signals_that_threads_unblock() {
    check(&[&built("unblocks")], 159, 1000);
}

/// One of twenty was lost.
#[test]
fn signals_while_another_one_is_delivered() {
    check(&[&built("alarmed")], 2, 2);
}

/// `alarm` said what it was asked for.
#[test]
fn timers_that_are_set_again() {
    check(&[&built("timers")], 1, 1);
}

/// Also: a mask in the program's memory was emptied.
#[test]
fn signals_that_end_sigsuspend() {
    check(&[&built("suspend")], 1, 3);
}

/// Guile and PyPy crashed.
#[test]
fn code_that_is_written_while_it_runs() {
    check(&[&built("jit")], 1, 1);
}

/// Racket could not read its own code: EFAULT.
#[test]
fn files_that_are_read_beside_code() {
    check(&[&built("code_heap")], 1, 1);
}

/// SBCL crashed.
#[test]
fn traps_of_the_program() {
    check(&[&built("traps")], 1, 1);
}

#[test]
fn thread_names() {
    let profile = check(&[&built("abuse"), "names"], 1, 3);
    let names: Vec<_> = profile.threads.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["renamed", "helper", "stays"]);
}

/// A file of numbers that compresses somewhat.
fn numbers(place: &Place) {
    let lines: String = (0..150_000u64)
        .map(|i| format!("{} {}\n", i, i * i % 9973))
        .collect();
    fs::write(place.path("numbers"), lines).expect("write");
}

#[test]
fn compressors() {
    let place = Place::new();
    numbers(&place);
    let several = Expected {
        processes: 1,
        threads: 4,
    };
    check_in(&place, &["pigz", "-n", "-p4", "-c", "numbers"], &several);
    check_in(
        &place,
        &["xz", "-T4", "-1", "--block-size=400KiB", "-c", "numbers"],
        &several,
    );
}

#[test]
fn standard_input_and_much_output() {
    let place = Place::new();
    numbers(&place);
    let piped = |prefix: &str| place.shell(&format!("cat numbers | {prefix} sort -k2n | cksum"));
    let native = piped("");
    let traced = piped(&format!("{HITHER} trace -q -o traced --"));
    assert_eq!(text(&native.stdout), text(&traced.stdout));
    assert!(accesses(&place.profile()) > 1_000_000);
}

#[test]
fn sqlite() {
    let place = Place::new();
    let sql = "create table t(a integer primary key, b text, c real);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
        insert into t select i, hex(i * 7919), i * 1.5 from n;
        create index bi on t(b);
        select count(*), sum(c), max(b) from t;
        select b, a from t where b > '36' order by b desc limit 5;\n";
    fs::write(place.path("q.sql"), sql).expect("write");
    let one = Expected {
        processes: 1,
        threads: 1,
    };
    check_in(&place, &["sqlite3", ":memory:", ".read q.sql"], &one);
}

#[test]
fn python_with_threads() {
    let program = "import threading, zlib\nout = []\ndef f(i):\n    d = {j: str(j) for j in range(1000)}\n    out.append(zlib.crc32(repr(sorted(d)).encode()))\nt = [threading.Thread(target=f, args=(i,)) for i in range(6)]\nfor x in t: x.start()\nfor x in t: x.join()\nprint(len(set(out)), len(out))\nraise SystemExit(4)";
    check(&["/usr/bin/python3", "-S", "-c", program], 1, 7);
}

#[test]
fn scripts() {
    let place = Place::new();
    let script = "#!/bin/bash -e\nfor i in a b; do echo \"$i $0 $(echo $i | tr a-c A-C)\"; done\n\
        sort < <(echo sub; echo an)\n(exit 5) || echo \"got $?\"\nexit 6\n";
    fs::write(place.path("script"), script).expect("write");
    place.shell("chmod +x script");
    check_in(
        &place,
        &["./script"],
        &Expected {
            processes: 8,
            threads: 8,
        },
    );
}

const GO: &str = "package main
import (\"fmt\"; \"runtime\"; \"sync\")
func main() {
	runtime.GOMAXPROCS(4)
	var wg sync.WaitGroup
	c := make(chan int, 4)
	for g := 0; g < 64; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			s := []int{}
			for i := 0; i < 2000; i++ { s = append(s, i*g); if i%500 == 0 { runtime.Gosched() } }
			c <- s[1999]
		}(g)
	}
	go func() { wg.Wait(); close(c) }()
	total := 0
	for v := range c { total += v }
	runtime.GC()
	fmt.Println(total)
}
";

#[test]
fn go() {
    let place = Place::new();
    fs::write(place.path("main.go"), GO).expect("write");
    if !there("go") {
        return;
    }
    let built =
        place.shell("GOFLAGS= GO111MODULE=off GOCACHE=$PWD/cache go build -o program main.go");
    assert!(built.status.success(), "{}", text(&built.stderr));
    check_in(
        &place,
        &["./program"],
        &Expected {
            processes: 1,
            threads: 3,
        },
    );
}

const JAVA: &str = "
class Sum extends Thread {
    static long[] numbers = new long[1 << 16];
    long sum;
    public void run() { for (long n : numbers) sum += n; }
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < numbers.length; i++) numbers[i] = i;
        Sum[] all = new Sum[4];
        for (int i = 0; i < 4; i++) { all[i] = new Sum(); all[i].start(); }
        long total = 0;
        for (Sum one : all) { one.join(); total += one.sum; }
        System.out.println(total);
    }
}
";

#[test]
fn java_interpreted() {
    let place = Place::new();
    fs::write(place.path("Sum.java"), JAVA).expect("write");
    if !there("javac") {
        return;
    }
    let built = place.shell("javac Sum.java");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let expected = Expected {
        processes: 1,
        threads: 5,
    };
    check_in(&place, &["java", "-Xint", "-cp", ".", "Sum"], &expected);
}
