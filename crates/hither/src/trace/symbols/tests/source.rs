use crate::trace::symbols::lvalue::{parse_lvalue, AllocationReceiver, LvalueStep};
use crate::trace::symbols::source_fortran;
use crate::trace::symbols::source_tree::{Grammar, SourceTree};

/// The names the statement at the line with `@` gives; the cursor is where `@` stands.
fn names(text: &str, read: impl Fn(&[String], usize, usize) -> AllocationReceiver) -> String {
    let at = text.lines().position(|l| l.contains('@')).expect("a mark");
    let column = text
        .lines()
        .nth(at)
        .and_then(|l| l.find('@'))
        .expect("a mark");
    let lines: Vec<String> = text.lines().map(|l| l.replace('@', "")).collect();
    match read(&lines, at, column + 1) {
        AllocationReceiver::Variables(all) => {
            let texts: Vec<_> = all.iter().map(|l| l.text.as_str()).collect();
            texts.join(", ")
        }
        AllocationReceiver::Returned => "(returned)".into(),
        AllocationReceiver::Unknown => "(unknown)".into(),
    }
}

const ALL: [Grammar; 3] = [Grammar::C, Grammar::Cpp, Grammar::Rust];

fn by_tree(lines: &[String], at: usize, column: usize, grammar: Grammar) -> AllocationReceiver {
    let tree = SourceTree::parse(lines.join("\n"), grammar).expect("a tree");
    tree.receiver(at as u32 + 1, column as u32)
}

#[test]
fn c_and_cpp_statements() {
    for (text, expected) in [
        ("  double *a = (double *)@malloc(n * sizeof *a);", "a"),
        ("  key_buff1 = (int*)@alloc_mem(sizeof(int));", "key_buff1"),
        ("  this->x = @new int[n];", "x"),
        ("  g->cells[i].next = @calloc(1, n);", "g->cells[i].next"),
        ("  *out = @malloc(n);", "*out"),
        ("  double *p = @malloc(n);", "p"),
        ("  double *p = malloc(n), *q = @malloc(n);", "q"),
        ("#pragma omp parallel @for\n  for (;;) p = q;", "(unknown)"),
        ("  auto* p = @new double[n];", "p"),
        ("  std::vector<double> @grid(n);", "grid"),
        (
            "  std::vector<std::pair<int, int>> @grid(n, {0, 0});",
            "grid",
        ),
        ("  std::map<int,int> m; std::string @s(100, 'x');", "s"),
        ("  grid.@resize(n);", "grid"),
        ("  at = list.@insert(x);", "list"),
        ("  Matrix @a(n, m), b(n);", "a"),
        ("  Matrix a(n, m), @b(n);", "b"),
        ("  std::vector<double> a(n, 0), *p, @b{n};", "b"),
        ("  for (i = 0; i < n; i++) work(@malloc(n));", "(unknown)"),
        ("  a = @pair(';', malloc(n));", "a"),
        ("  a = @malloc(n * sizeof(double[4])); b = 2;", "a"),
        ("  this->rows.@push_back(x);", "rows"),
        ("  cells[i].list.@push_back(x);", "cells[i].list"),
        ("  if ((p = @malloc(n)) == NULL) exit(1);", "p"),
        ("  if (!(p = @malloc(n))) { exit(1); }", "p"),
        ("  a = @malloc(n); b = malloc(n);", "a"),
        ("  a = malloc(n); b = @malloc(n);", "b"),
        ("  rc = @posix_memalign((void **)&buffer, 64, n);", "buffer"),
        (
            "  if (@posix_memalign((void **)&buffer, 64, n)) abort();",
            "buffer",
        ),
        ("  @MPI_Alloc_mem(n, MPI_INFO_NULL, &window);", "window"),
        ("  double *a =\n      (double *)@malloc(n);", "a"),
        ("  double *a\n  =\n      (double *)@malloc(n);", "a"),
        ("  double *a = (double *)@malloc(\n   n);", "a"),
        ("  x = 1;\n  foo(@malloc(n));", "(unknown)"),
        ("  return @malloc(n);", "(returned)"),
        ("  returned = @malloc(n);", "returned"),
        (
            "Grid::Grid(int n) : rows(n), data(@new double[n]) {}",
            "data",
        ),
        ("Grid::Grid(int n) : data{@new double[n]} {}", "data"),
        (
            "Grid::Grid(int n)\n    : flags(new int[n]), data(n@) {}",
            "data",
        ),
        (
            "Grid::Grid(int n)\n    : rows(n),\n      data@(n) {}",
            "data",
        ),
        ("static T (*u0)=(T*)@malloc(n);", "u0"),
        (
            "static double (*u)[M+1][5]=(double(*)[M+1][5])@malloc(n);",
            "u",
        ),
        ("  double (*B)[N] = @malloc(n);", "B"),
        ("void f(int **out) { *out = @malloc(n); }", "*out"),
        ("void f(M **a) { (*a)->rows = @new int[n]; }", "(*a)->rows"),
        (
            "void f(M *a) { (*a).rows[i] = @malloc(n); }",
            "(*a).rows[i]",
        ),
        ("  auto p = std::@make_unique<T[]>(n);", "p"),
        ("struct S s = { .cells = @malloc(n) };", "cells"),
        ("struct S s = { 1, @malloc(n) };", "s"),
        ("class C { double *p = @new double[8]; };", "p"),
        ("auto f = [p = @malloc(n)] { return p; };", "p"),
        ("auto f = [=] { work(@malloc(n)); };", "(unknown)"),
        ("auto f = [c = std::vector<int>(n)] { work(); @};", "c"),
        ("auto f = [=] { work(); @};", "f"),
        ("auto f = [a = one(n), b = two(n)] { work(); @};", "f"),
        ("  counts[key@] = 1;", "counts"),
        ("  a.counts[key@]++;", "a.counts"),
        ("  counts[std::@string(text)] = 1;", "(unknown)"),
        ("void f() { if (int *p = (int *)@malloc(4)) free(p); }", "p"),
        ("int *a = f(), &b = *@new int;", "b"),
        ("  x->y = std::vector<int>@(n);", "x->y"),
        ("  EXPORT(int) g;\n  WRAP(a) = @malloc(n);", "WRAP(a)"),
        ("  a += @alloc(n);", "(unknown)"),
        ("  auto p = std::@make_unique<double[]>(n);", "p"),
        ("  p.@reset(new double[n]);", "p"),
        ("  // b = malloc(1)\n  a = @malloc(n); // c = d", "a"),
        ("  a /* = b */ = @malloc(n);", "a"),
        ("  const char *s = @strdup(\"x = y;\");", "s"),
        (
            "  for (int i = 0; i < n; i++) rows[i] = @malloc(n);",
            "rows[i]",
        ),
        (
            "  for (i = 0; i < n; i++) { rows[i] = @malloc(n); }",
            "rows[i]",
        ),
        ("  ns::table = @new int[n];", "ns::table"),
        ("  a = b ? @malloc(n) : malloc(m);", "a"),
        ("  a = b == c ? @malloc(n) : 0;", "a"),
        ("  x += @strlen(y);", "(unknown)"),
        ("  work(@n);", "(unknown)"),
        ("  ((((((((@", "(unknown)"),
        ("  ]]]]) = @malloc(", "(unknown)"),
        ("  = @malloc(n);", "(unknown)"),
        ("  \u{e4}\u{f6} = @malloc(n);", "\u{e4}\u{f6}"),
    ] {
        let read = |l: &[String], at, c| by_tree(l, at, c, Grammar::Cpp);
        assert_eq!(names(text, read), expected, "{text}");
    }
}

/// The grammar has no pointers in what `new` makes; HPCCG allocates one array of them behind another.
#[test]
fn arrays_of_pointers_are_named_after_their_variable() {
    for (text, expected) in [
        ("  double **x = @new double*[n];", "x"),
        (
            "  a->p = new double*[n];\n  a->q = @new int   *[n];\n  *x = new double[n];",
            "a->q",
        ),
        (
            "  (*A)->p = new double*[n];\n  (*A)->q = @new int   *[n];\n  (*A)->r = new T*[n];",
            "(*A)->q",
        ),
        ("  a.p = new T *[n];\n\n  *x = @new double[n];", "*x"),
        ("  a.p = new T *[n];\n  x[i] = @new double[m];", "x[i]"),
        ("  rows = new T *[n];\n  std::vector<int> @v(n);", "v"),
        ("  p = @new T **[n]();\n  q = new T*[n];", "p"),
        ("  p = new T*[n](); q = @new (std::nothrow) T *[n];", "q"),
        ("  p = new T*[n]; q = @new std::pair<int, T *> *[n];", "q"),
        ("  p = new unsigned long *[n];\n  q = @new T *{};", "q"),
        ("  auto **p = new auto*(0);\n  q = @malloc(n);", "q"),
        ("  q = renew * [n] { return @malloc(n); };", "(returned)"),
        // Where GCC says that the block is made.
        (
            "  (*A)->p = new double*[n];\n  (*A)->q = new int   *[n@];\n  (*A)->r = new T*[n];",
            "(*A)->q",
        ),
        ("  f(new T *[n]);\n  q = @new \u{e4} *[n];", "q"),
    ] {
        let read = |l: &[String], at, c| by_tree(l, at, c, Grammar::Cpp);
        assert_eq!(names(text, read), expected, "{text}");
    }
}

/// Words that only C++ keeps for itself.
#[test]
fn c_statements() {
    for (text, expected) in [
        ("  float *new; new = (float *) @malloc(n);", "new"),
        ("  struct list *class = @malloc(n);", "class"),
        ("  this->template = @malloc(n);", "template"),
        ("double *f(int n) { return @malloc(n); }", "(returned)"),
        (
            "static double (*u)[M+1][5]=(double(*)[M+1][5])@malloc(n);",
            "u",
        ),
        ("  double (*B)[N] = @malloc(n);", "B"),
        ("  u = (double (*)[N]) @malloc(n);", "u"),
        ("  p->x[i] = @malloc(n), q = 0;", "p->x[i]"),
        ("struct S s = { .cells = @malloc(n) };", "cells"),
        // Macros that make functions (klib): the line has the calls of all of them.
        (
            "@KSEQ_INIT2(, gzFile, gzread)\n\nunsigned char table[2] = {0, 1};",
            "(unknown)",
        ),
        (
            "@KSEQ_INIT(gzFile, gzread)\nstatic int count = 3, *all;",
            "(unknown)",
        ),
        (
            "@KHASH_MAP_INIT_STR(str, int)\nkhash_t(str) *table = NULL;",
            "(unknown)",
        ),
    ] {
        let read = |l: &[String], at, c| by_tree(l, at, c, Grammar::C);
        assert_eq!(names(text, read), expected, "{text}");
    }
}

#[test]
fn rust_statements() {
    for (text, expected) in [
        ("    let mut v: Vec<f64> = @vec![0.0; n];", "v"),
        ("    let v = Vec::@with_capacity(n);", "v"),
        ("    self.cells = @vec![0; n];", "cells"),
        ("    grid.rows.@push(x);", "grid.rows"),
        ("    Grid {\n        cells: @vec![0; n],\n    }", "cells"),
        ("    let b =\n        Box::@new([0; 64]);", "b"),
        ("    @vec![0; n]", "(unknown)"),
        ("fn f() { return @vec![0; n]; }", "(returned)"),
        ("fn f() { let (a, b) = (1, @vec![0; n]); }", "(unknown)"),
        ("fn f() { rows[i] = @vec![0; n]; }", "rows[i]"),
        ("fn f() { let c = move || { @vec![0; n] }; }", "(unknown)"),
    ] {
        let read = |l: &[String], at, c| by_tree(l, at, c, Grammar::Rust);
        assert_eq!(names(text, read), expected, "{text}");
    }
}

#[test]
fn fortran_statements() {
    for (text, expected) in [
        ("  allocate(@a(n,m))", "a"),
        ("  allocate(@a(n,m), b(n))", "a, b"),
        ("  ALLOCATE (@A(0:n), stat=ierr)", "A"),
        ("  allocate(real(8) :: @a(n))", "a"),
        (
            "  allocate(@x%data(n), y%cells(i)%v(m,2))",
            "x%data, y%cells(i)%v",
        ),
        ("  if (.not. allocated(a)) allocate(@a(n))", "a"),
        (
            "  allocate(a(n), &\n           @b(n), & ! two\n           c(n))",
            "a, b, c",
        ),
        ("  allocate(@a(n), &\n           b(n))", "a, b"),
        ("      allocate(@a(n),\n     &  b(n))", "a, b"),
        (
            "  allocate(a &\n (l: &\n ! upper\n u, &\n\n m: &\n @n))",
            "a",
        ),
        ("  allocate(@a, source=b)", "a"),
        ("  allocate(@a(n),b(n)); allocate(c(n))", "a, b, c"),
        ("  deallocate(@a)", "(unknown)"),
        ("  a = @b + c", "a"),
        ("  if (a == @b) stop", "(unknown)"),
        ("  print *, 'allocate(x)', @n", "(unknown)"),
        ("  ! allocate(x)@", "(unknown)"),
    ] {
        let read = |l: &[String], at, _| source_fortran::receiver(l, at);
        assert_eq!(names(text, read), expected, "{text}");
    }
}

#[test]
fn parts_of_variables() {
    let member = |name: &str| LvalueStep::Member(name.into());
    for (text, root, steps) in [
        ("a", "a", vec![]),
        ("this->a[i]", "a", vec![LvalueStep::Index]),
        (
            "g->cells[i].next",
            "g",
            vec![member("cells"), LvalueStep::Index, member("next")],
        ),
        ("a%b(i)", "a", vec![member("b"), LvalueStep::Index]),
        ("ns::a.b", "a", vec![member("b")]),
    ] {
        let found = parse_lvalue(text).expect(text);
        assert_eq!((found.root.as_str(), found.steps), (root, steps), "{text}");
    }
    for text in ["", "1", "+", "a[", "a]", "->", "a+b"] {
        assert_eq!(parse_lvalue(text), None, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_strange(text in "[ -~äß\n\t]{0,120}", at in 0usize..8, column in 0usize..90) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.push("x = malloc(".into());
        let at = at.min(lines.len() - 1);
        for grammar in ALL {
            by_tree(&lines, at, column, grammar);
        }
        source_fortran::receiver(&lines, at);
    }

    #[test]
    fn no_brackets_are_too_strange(text in "[a(){}=;:,&.>\\[\\]*\"/!ä \n-]{0,80}alloc[a(){}=;:,&%.ä \n]{0,40}", column in 0usize..90) {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for at in 0..lines.len() {
            for grammar in ALL {
                by_tree(&lines, at, column, grammar);
            }
            source_fortran::receiver(&lines, at);
        }
    }
}
