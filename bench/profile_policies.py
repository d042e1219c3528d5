"""References for what `bench/policies.py` compares of profiles: where pages are, and what moves when. Short and slow,
from the papers (OPT, kMAF, Loef and Holmgren, ICS 2005); where a policy is hither's own, from docs/policies.md. Profiles are made of random use
(`crates/profile/examples/made.rs`), eight threads on four nodes, two on each."""
import json
import os
import subprocess
import tempfile

THREADS, NODES, MACHINE = 8, 4, "node:4 core:2 pu:1"
T_MIN = 10 * 10**9  # of pages, OPT 6.3
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIFF_MIN, H_MIN, A_MIN = 0.2, 100, 150  # OPT 4.1.3, 6.2.2


def node_of(thread):
    return thread // 2


def made_placement(tools, lines, options):
    """The phases of what hither writes for a made profile."""
    hither, made = tools
    with tempfile.TemporaryDirectory() as folder:
        profile, file = f"{folder}/made.hither", f"{folder}/made.place.json"
        subprocess.run([made, profile, str(THREADS)], input="\n".join(lines), text=True, check=True)
        subprocess.run([hither, "map", profile, "--topology", MACHINE, "-o", file, *options], check=True,
                       stdout=subprocess.DEVNULL)
        with open(file, encoding="utf-8") as text:
            return json.load(text)["phases"]


def random_use(draw, pages, slices, most=60):
    """Of each page who touched it first and, by slice, the accesses of each node; and the lines that make it so. What
    others access is little often enough for pages to belong to somebody."""
    touched = [draw.randrange(THREADS) for _ in range(pages)]
    used, lines = [], []
    for page in range(pages):
        lines.append(f"touch 0 {page} {touched[page]}")
    for at in range(slices):
        by_page = []
        for page in range(pages):
            owner, nodes = draw.randrange(THREADS), [0] * NODES
            for thread in sorted(draw.sample(range(THREADS), draw.randrange(0, 5)) + [owner]):
                accesses = draw.randrange(1, most) // (1 if thread == owner else draw.choice((1, 4, 16))) + 1
                nodes[node_of(thread)] += accesses
                lines.append(f"use {at} {page} {thread} {accesses}")
            by_page.append(nodes)
        used.append(by_page)
    # A thread that hardly works would be left to the system: all have as much to do on a last page of their own.
    for thread in range(THREADS):
        lines.append(f"touch 0 {pages + thread} {thread}")
        lines.append(f"use 0 {pages + thread} {thread} {50 * pages * slices}")
    return touched, used, lines


def sums(used, page):
    return [sum(by_page[page][n] for by_page in used) for n in range(NODES)]


def two_highest(numbers):
    return sorted(numbers)[:-3:-1]


def exceeds(nv):
    """kMAF eq. 6."""
    first, second = two_highest(nv)
    return first > 2 * second + 1


def by_kmaf(home, steps):
    """Where a page is after each step in which it is used: kMAF 3.3."""
    nv, at, places = [0] * NODES, home, []
    for step in steps:
        nv = [sum(both) for both in zip(nv, step)]
        best = nv.index(max(nv))
        if exceeds(nv) and best != at:
            at, nv = best, [n // 2 for n in nv]
        places.append(at)
    return places


def by_opt(steps, starts):
    """Where a page is from each step on: on the node that accesses it most (eq. 8), the first time at once, then
    moved at most once in t_min (6.3). Of equals it stays."""
    at, last, places = None, None, []
    for step, start in zip(steps, starts):
        right = [n for n in range(NODES) if step[n] == max(step)]
        if at is None:
            at = right[0]
        elif at not in right and (last is None or start - last >= T_MIN):
            at, last = right[0], start
        places.append(at)
    return places


def by_load(used, touched, allowed, order):
    """The accesses that each node serves: each page goes where `allowed` says, in that order, best first."""
    load = [0] * NODES
    places = {}
    for page in sorted(range(len(touched)), key=order):
        nodes = sums(used, page)
        places[page] = allowed(nodes, load, node_of(touched[page]))
        load[places[page]] += sum(nodes)
    return places


def nearness(home, node):
    """All other nodes are as far; then the first."""
    return (node != home, node)


def by_balanced(used, touched):
    """docs/policies.md: what eq. 6 gives to one node there, the others where there is least load."""
    def least_load(nodes, load, home):
        may = [n for n in range(NODES) if nodes[n] == max(nodes) or max(nodes) <= 2 * nodes[n] + 1]
        return min(may, key=lambda n: (load[n], -nodes[n], nearness(home, n)))
    return by_load(used, touched, least_load,
                   lambda page: (not exceeds(sums(used, page)), -sum(sums(used, page)), page))


def by_locality_balance(used, touched, mix):
    """docs/policies.md: most accesses, while a node serves less than its share; the pages first that lose most."""
    total = sum(sum(sums(used, page)) for page in range(len(touched)))
    limit = total / NODES + mix * (total - total / NODES)

    def most_below(nodes, load, home):
        below = [n for n in range(NODES) if load[n] < limit] or list(range(NODES))
        return min(below, key=lambda n: (-nodes[n], nearness(home, n)))

    def order(page):
        first, second = two_highest(sums(used, page))
        return -(first - second), -sum(sums(used, page)), page
    return by_load(used, touched, most_below, order)


def places_over_time(phases, starts, pages):
    """Of each page its node in each slice."""
    at, out = {}, []
    for start in starts:
        for phase in (p for p in phases if p["start"] <= start):
            for region in phase["pages"]:
                for first, count, node in region["runs"]:
                    at.update((page, node) for page in range(first, first + count))
        out.append([at[page] for page in range(pages)])
        phases = [p for p in phases if p["start"] > start]
    return out


def own_pages(lines, touched, used):
    """The last pages, which are part of what policies see."""
    mine = [[line.split() for line in lines[2 * t - 2 * THREADS:][:2]] for t in range(THREADS)]
    for (_, _, _, thread), (_, _, _, _, accesses) in mine:
        touched.append(int(thread))
        for at, by_page in enumerate(used):
            nodes = [0] * NODES
            nodes[node_of(int(thread))] = int(accesses) if at == 0 else 0
            by_page.append(nodes)


def compare_pages(tools, policy, draw):
    """What hither decides of the pages of one profile, and what the reference does."""
    pages, slices = draw.randrange(5, 30), draw.randrange(1, 8)
    touched, used, lines = random_use(draw, pages, slices)
    own_pages(lines, touched, used)
    every = range(len(touched))
    length = draw.randrange(2, 6) * 10**9
    starts = [at * length for at in range(slices)]
    lines = [f"slice {length}"] * slices + lines
    lines.sort(key=sort_key)
    data, _, timed = policy.partition(" over ")
    options = ["--policy", "compact", "--data", data] + (["--phases", "--rule", "opt"] if timed else [])
    phases = made_placement(tools, lines, options)
    if timed:
        ours = places_over_time(phases, starts, len(touched))
        steps = {page: [at for at in range(slices) if sum(used[at][page])] for page in every}
        theirs = [[None] * len(touched) for _ in starts]
        for page in every:
            uses = [used[at][page] for at in steps[page]]
            home = node_of(touched[page])
            # What a step shows kMAF acts on in the next; OPT knows it before.
            places = ([home] + by_kmaf(home, uses)[:-1] if data == "kmaf"
                      else by_opt(uses, [starts[at] for at in steps[page]]))
            for at, place in zip(steps[page], places):
                theirs[at][page] = place
        seen = [[node if theirs[at][page] is not None else None for page, node in enumerate(row)]
                for at, row in enumerate(ours)]
        return seen, theirs
    ours = places_over_time(phases, [0], len(touched))[0]
    if data == "most-access":  # of equals any
        return [sums(used, page)[ours[page]] for page in every], [max(sums(used, page)) for page in every]
    if data == "interleave":
        return ours, [page % NODES for page in every]
    if data == "kmaf":
        return ours, [by_kmaf(node_of(touched[page]), [u[page] for u in used if sum(u[page])])[-1] for page in every]
    if data == "balanced":
        places = by_balanced(used, touched)
    else:
        places = by_locality_balance(used, touched, float(data.partition(":")[2]))
    return ours, [places[page] for page in every]


def sort_key(line):
    """As a profile's tables are sorted: by slice, page, thread."""
    kind, *numbers = line.split()
    numbers = [int(n) for n in numbers]
    return ("slice", "share", "touch", "use").index(kind), numbers if kind != "slice" else []


def heterogeneity(matrix):
    """OPT eq. 1 and 2."""
    most = max(map(max, matrix)) or 1
    rows = [[100 * cell / most for cell in row] for row in matrix]
    return sum((sum(row) / len(row) - cell) ** 2 for row in rows for cell in row) / len(rows) ** 2


def by_five_conditions(patterns, lengths, t_min, mapping):
    """OPT 6.2.2: times and placements of threads. `patterns`: who shares how much in each slice of 10 ms, constant for as
    many slices as `lengths` has. What differs by less than diff_min from the phase before is the same phase (eq. 4)."""
    phases, begin, before = [], 0, None
    for pattern, length in zip(patterns, lengths):
        now = heterogeneity(pattern)
        if before is None or abs(now - before) >= DIFF_MIN * now:
            phases.append((begin, []))
        phases[-1][1].append((pattern, length))
        begin, before = begin + length, now
    phases.append((begin, []))
    moves, last = [], None
    for (start, parts), (end, _) in zip(phases, phases[1:]):
        matrix = [[sum(part[i][j] * length for part, length in parts) for j in range(THREADS)] for i in range(THREADS)]
        amount = sum(map(sum, matrix)) / THREADS ** 2 / ((end - start) * 0.01)
        for at in range(start, end):  # in every slice of the phase: it has changed (1), until threads move
            soon = last is not None and at - last < t_min
            if heterogeneity(matrix) <= H_MIN or amount <= A_MIN or soon:
                continue
            places = mapping(matrix)
            if not moves:
                moves.append((0, places))  # the run starts with the first mapping (6.4)
            elif places != moves[-1][1]:
                moves.append((at, places))
                last = at
            break
    return moves


def random_pattern(draw):
    """Who shares with whom: those whose numbers differ by some bits, or two threads most, with some noise; much or little
    of it."""
    scale, noise = draw.choice((1, 20, 20, 20)), draw.choice((0, 1, 4, 8))
    partners, pair = draw.choice(((1,), (2,), (4,), (1, 2, 3), (2, 4, 6), ())), draw.sample(range(THREADS), 2)
    matrix = [[0] * THREADS for _ in range(THREADS)]
    for i in range(THREADS):
        for j in range(i + 1, THREADS):
            cell = 10 if i ^ j in partners or {i, j} == set(pair) else draw.randrange(noise + 1)
            matrix[i][j] = matrix[j][i] = cell * scale
    return matrix


def scotch(hither, matrix):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/m.csv", "w", encoding="ascii") as out:
            out.writelines(",".join(map(str, row)) + "\n" for row in matrix)
        told = subprocess.run([hither, "map", "--matrix", f"{folder}/m.csv", "--topology", MACHINE, "--policy", "scotch",
                               "--json"], capture_output=True, text=True, check=True)
        return [pu // 2 for pu in json.loads(told.stdout)["pus"]]


def compare_conditions(tools, draw):
    """In which slice threads move, and to which node: places of a node are alike, and which of them a thread has is no
    other mapping."""
    count = draw.randrange(2, 6)
    patterns, lengths = [random_pattern(draw) for _ in range(count)], [draw.randrange(100, 250) for _ in range(count)]
    t_min = draw.choice((100, 180))
    lines, at = [], 0
    for pattern, length in zip(patterns, lengths):
        for _ in range(length):
            lines += [f"share {at} {i} {j} {pattern[i][j]}" for i in range(THREADS) for j in range(i) if pattern[i][j]]
            at += 1
    lines = ["slice 10000000"] * at + sorted((flipped(line) for line in lines), key=sort_key)
    phases = made_placement(tools, lines, ["--policy", "scotch", "--data", "first-touch", "--phases", "--rule", "opt",
                                           "--thread-interval", f"{t_min * 10}ms"])
    ours = [(phase["start"] // 10**7, [node for _, _, _, node in phase["threads"]]) for phase in phases if phase["threads"]]
    theirs = by_five_conditions(patterns, lengths, t_min, lambda matrix: scotch(tools[0], matrix))
    return ours, theirs or ours[:1]  # none worth a mapping: that of the whole run stays


def by_next_touch(windows):
    """Reads of each node's memory from it and from others, of windows of (thread, page) in order. Pages are marked at the
    beginning of a window, and go to the node of who touches them next."""
    reads = [[0, 0] for _ in range(NODES)]
    for window in windows:
        at = {}
        for thread, page in window:
            home = at.setdefault(page, node_of(thread))
            reads[home][home != node_of(thread)] += 1
    return reads


def compare_next_touch(tools, draw):
    """Reads by node that `hither sim` counts of a recording in which threads read one after the other, each line of a page
    once, so that none is in a cache."""
    hither, made = tools
    pages, windows = draw.randrange(3, 20), []
    lines = [f"slice {10**8}"]
    lines += [f"touch 0 {page} {draw.randrange(THREADS)}" for page in range(pages)]
    lines += [f"use 0 0 {thread} 1000" for thread in range(THREADS)]
    for at in range(draw.randrange(1, 8)):
        turns = [(thread, page) for thread in draw.sample(range(THREADS), THREADS)
                 for page in draw.sample(range(pages), draw.randrange(1, pages + 1))]
        lines += [f"read {at} {thread} {page} {8 * at + thread} {1000 * turn}" for turn, (thread, page) in enumerate(turns)]
        windows.append(turns)
    with tempfile.TemporaryDirectory() as folder:
        profile, machine = f"{folder}/made.hither", f"{folder}/machine.toml"
        subprocess.run([made, profile, str(THREADS)], input="\n".join(lines), text=True, check=True)
        with open(os.path.join(ROOT, "testdata/machines/generic.toml"), encoding="utf-8") as typical:
            kept = [line for line in typical if not line.startswith("prefetch")]
        with open(machine, "w", encoding="utf-8") as file:
            file.writelines(kept)
        told = subprocess.run([hither, "sim", profile, "--topology", MACHINE, "--machine", machine, "--no-keep", "--quiet",
                               "--policy", "compact+next-touch", "--warm-up", "0", "--json"], capture_output=True, text=True, check=True)
    nodes = json.loads(told.stdout)["comparisons"][0]["placements"][0]["amounts"]["nodes"]
    return [[node["local_reads"], node["remote_reads"]] for node in nodes], by_next_touch(windows)


def flipped(line):
    """The thread with the smaller number first."""
    kind, at, i, j, events = line.split()
    return f"{kind} {at} {j} {i} {events}"


FOUND_IN_PROFILES = ("most-access", "kmaf", "balanced", "locality-balance:0", "locality-balance:0.1", "interleave",
                     "most-access over time", "kmaf over time", "next-touch", "opt")


def compare_profile(tools, policy, draw):
    """What hither decides, and what the reference does."""
    if policy == "opt":
        return compare_conditions(tools, draw)
    return compare_next_touch(tools, draw) if policy == "next-touch" else compare_pages(tools, policy, draw)


def example_made():
    """Builds crates/profile/examples/made.rs."""
    cargo = os.environ.get("CARGO", "cargo")
    subprocess.run([cargo, "build", "--quiet", "--package", "hither-profile", "--example", "made"], cwd=ROOT, check=True)
    return os.path.join(ROOT, "target/debug/examples/made")
