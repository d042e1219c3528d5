fn main() {
    let p = hither_profile::read(std::path::Path::new(&std::env::args().nth(1).unwrap())).unwrap();
    let all: u64 = p.threads.iter().map(|t| t.accesses()).sum();
    println!(
        "accesses {all} events {} misses {} rows {} limits {:?}",
        p.matrix().total(),
        p.meta.cost.line_cache_misses,
        p.lines.len(),
        p.meta.limits
    );
    let mut v: Vec<_> = p.lines.iter().collect();
    v.sort_by_key(|l| (l.region.0, l.offset));
    for l in v.iter().take(60) {
        let name = p
            .object_ranges
            .iter()
            .find(|r| {
                r.region == l.region && l.offset < r.offset + r.length && r.offset < l.offset + 64
            })
            .map(|r| p.objects[r.object.at()].name.clone())
            .unwrap_or_default();
        println!(
            "r{} {:#x} t{} r {:016x} w {:016x} n {} seen {} {} {:?}",
            l.region.0,
            l.offset,
            l.thread.0,
            l.read_mask,
            l.write_mask,
            l.accesses,
            l.seen,
            name,
            p.regions[l.region.at()].kind
        );
    }
}
