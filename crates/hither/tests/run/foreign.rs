//! Programs from Debian and elsewhere.
use super::*;

/// A file of numbers that compresses somewhat.
fn numbers(place: &Place) {
    let lines: String = (0..200_000u64)
        .map(|i| format!("{} {}\n", i, i * i % 9973))
        .collect();
    place.write("numbers", &lines);
}

#[test]
fn compressors_and_sort() {
    let place = Place::new();
    numbers(&place);
    check_in(&place, &["pigz", "-n", "-p4", "-c", "numbers"]);
    check_in(
        &place,
        &["xz", "-T4", "-1", "--block-size=400KiB", "-c", "numbers"],
    );
    check_in(&place, &["sort", "--parallel=4", "-k2n", "numbers"]);
    let piped = |prefix: &str| {
        place.marked_shell(&format!(
            "cat numbers | {prefix} sort -k2n | cksum; wc -l numbers"
        ))
    };
    let line = RUN.join(" ");
    same(&["sort in a pipe"], &piped(""), &piped(&line));
}

#[test]
fn python() {
    let threads = "import threading, zlib\nout = []\ndef f(i):\n    d = {j: str(j) for j in range(1000)}\n    out.append(zlib.crc32(repr(sorted(d)).encode()))\nt = [threading.Thread(target=f, args=(i,)) for i in range(6)]\nfor x in t: x.start()\nfor x in t: x.join()\nprint(len(set(out)), len(out))\nraise SystemExit(4)";
    check(&["python3", "-S", "-c", threads], 4);
    let pool = "import multiprocessing as m, subprocess as s, os\ndef f(i): return i * i, len(os.sched_getaffinity(0))\nif __name__ == '__main__':\n    with m.Pool(4) as p: print(sorted(p.map(f, range(100)))[-1])\n    print(s.run(['sh', '-c', 'echo $0; kill -USR1 $$'], capture_output=True).returncode)\n    print(s.check_output('nproc; ulimit -c', shell=True))";
    check(&["python3", "-c", pool], 0);
}

#[test]
fn node() {
    if there("node") {
        let program = "const w = require('worker_threads');
            if (w.isMainThread) {
              let n = 0;
              for (let i = 0; i < 4; i++)
                new w.Worker(process.argv[1], {workerData: i}).on('message', m => { n += m; })
                  .on('exit', () => { if (++done === 4) { console.log(n); process.exitCode = 3; } });
              var done = 0;
            } else {
              let s = 0; for (let i = 0; i < 1e6; i++) s = (s * 31 + i) % 65521;
              w.parentPort.postMessage(s);
            }";
        let place = Place::new();
        place.write("workers.js", program);
        let output = check_in(&place, &["node", "workers.js"]);
        assert_eq!(status(&output), 3);
    }
}

#[test]
fn sqlite() {
    let place = Place::new();
    let sql = "pragma threads = 4; pragma cache_size = -200;
        create table t(a integer primary key, b text, c real);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
        insert into t select i, hex(i * 7919), i * 1.5 from n;
        create index bi on t(b);
        select count(*), sum(c), max(b) from t;
        select b, a from t where b > '36' order by b desc limit 5;\n";
    place.write("q.sql", sql);
    check_in(&place, &["sqlite3", ":memory:", ".read q.sql"]);
}

#[test]
fn scripts() {
    let place = Place::new();
    let script = "#!/bin/bash -e\nfor i in a b; do echo \"$i $0 $(echo $i | tr a-c A-C)\"; done\n\
        sort < <(echo sub; echo an)\n(exit 5) || echo \"got $?\"\n\
        trap 'echo trapped' USR1; kill -USR1 $$; sleep 0.05 & wait $!; echo \"waited $?\"\nexit 6\n";
    place.write("script", script);
    place.shell("chmod +x script");
    assert_eq!(status(&check_in(&place, &["./script"])), 6);
    let big =
        "seq 300 | while read n; do /bin/true; done; echo $(seq 5 | xargs -P 3 -n 1 echo | sort)";
    check(&["sh", "-c", big], 0);
    check(&["sh", "-c", "kill -SEGV $$"], 139);
    check(&["sh", "-c", "(kill -9 $$)"], 137);
}

const GO: &str = "package main
import (\"fmt\"; \"os/exec\"; \"runtime\"; \"sync\"; \"time\")
func main() {
	fmt.Println(runtime.NumCPU())
	var wg sync.WaitGroup
	c := make(chan int, 4)
	for g := 0; g < 64; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			if g%8 == 0 { runtime.LockOSThread(); time.Sleep(time.Millisecond) }
			s := []int{}
			for i := 0; i < 20000; i++ { s = append(s, i*g); if i%500 == 0 { runtime.Gosched() } }
			c <- s[19999]
		}(g)
	}
	go func() { wg.Wait(); close(c) }()
	total := 0
	for v := range c { total += v }
	runtime.GC()
	out, err := exec.Command(\"nproc\").Output()
	fmt.Println(total, string(out), err)
}
";

#[test]
fn go() {
    if !there("go") {
        return;
    }
    let place = Place::new();
    place.write("main.go", GO);
    let built =
        place.shell("GOFLAGS= GO111MODULE=off GOCACHE=$PWD/cache go build -o program main.go");
    assert!(built.status.success(), "{}", text(&built.stderr));
    check_in(&place, &["./program"]);
}

const MPIRUN: [&str; 4] = ["mpirun", "--oversubscribe", "-np", "4"];

fn mpi(place: &Place, line: &[&str]) -> Output {
    let mut command = place.marked(line);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run(command)
}

/// Ranks each started by hither, and a hither around all of them.
#[test]
fn mpi_both_ways() {
    if !there("mpirun") {
        return;
    }
    let program = workload("mpi_ring");
    for line in [
        [&MPIRUN[..], &RUN, &[&program, "500"]].concat(),
        [&RUN[..], &MPIRUN, &[&program, "500"]].concat(),
    ] {
        let place = Place::new();
        let output = mpi(&place, &line);
        assert_eq!(text(&output.stderr), "", "{line:?}");
        assert_eq!(text(&output.stdout), "mpi_ring: 4 ranks, correct\n");
        assert_eq!(status(&output), 0);
        place.nobody_left();
    }
}
