use super::Workshop;
use crate::trace::symbolizer::Symbolizer;
use crate::trace::symbols::demangle::{
    demangle, is_rust_library, short_arguments, unqualified, without_defaults,
};
use crate::trace::symbols::ProgramSymbols;
use std::collections::BTreeSet;
use std::path::Path;

const CPP: &str = r#"
namespace ns { struct grid { int sweep(int n); }; int grid::sweep(int n) { return n + 1; } }
int sweep(int n) { return n; }
int sweep(double n) { return n; }
static int hidden(int n) { return n * 3; }
template <class T> T twice(T n) { return n + n; }
extern "C" int plain(int n) { return n; }
int main(int c, char **) { return ns::grid().sweep(c) + sweep(c) + sweep(0.5) + hidden(c) + twice<int>(c) + plain(c); }
"#;

fn function_addresses(program: &Path, name: &str) -> Vec<u64> {
    ProgramSymbols::new().function_addresses(program, name)
}

fn symbol(shop: &Workshop, program: &Path, name: &str) -> u64 {
    let table = shop.tool("nm", &[program.to_str().expect("UTF-8")]);
    let line = table.lines().find(|l| l.split(' ').nth(2) == Some(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {table}"));
    u64::from_str_radix(&line[..16], 16).expect("an address")
}

#[test]
fn names_as_linked_as_written_or_in_part() {
    let shop = Workshop::new();
    let program = shop.build("p.cpp", CPP, &["-g"]);
    let linked = |names: &[&str]| -> BTreeSet<u64> {
        names.iter().map(|n| symbol(&shop, &program, n)).collect()
    };
    for (name, expected) in [
        ("main", &["main"][..]),
        ("plain", &["plain"]),
        ("_ZN2ns4grid5sweepEi", &["_ZN2ns4grid5sweepEi"]),
        ("ns::grid::sweep", &["_ZN2ns4grid5sweepEi"]),
        ("sweep", &["_Z5sweepi", "_Z5sweepd"]),
        ("hidden", &["_ZL6hiddeni"]),
        ("twice", &["_Z5twiceIiET_S0_"]),
    ] {
        let found: BTreeSet<u64> = function_addresses(&program, name).into_iter().collect();
        assert_eq!(found, linked(expected), "{name}");
    }
}

#[test]
fn fortran_by_plain_name() {
    let shop = Workshop::new();
    let text =
        "module m\ncontains\nsubroutine step(n)\ninteger n\nn=n+1\nend subroutine\nend module
subroutine lone(n)\ninteger n\nn=n+1\nend subroutine
program p\nuse m\ninteger k\ncall step(k)\ncall lone(k)\nprint *,k\nend program\n";
    for options in [&["-g"][..], &[]] {
        let program = shop.build("f.f90", text, options);
        for (name, linked) in [
            ("step", "__m_MOD_step"),
            ("m::step", "__m_MOD_step"),
            ("lone", "lone_"),
        ] {
            let found = function_addresses(&program, name);
            assert_eq!(found, [symbol(&shop, &program, linked)], "{name}");
        }
    }
}

#[test]
fn stripped_programs_have_functions_in_their_debug_file() {
    let shop = Workshop::new();
    let program = shop.build("p.cpp", CPP, &["-g"]);
    let expected = symbol(&shop, &program, "_ZL6hiddeni");
    shop.tool("objcopy", &["--only-keep-debug", "p.out", "p.debug"]);
    // Without the symbol table only DWARF knows.
    shop.tool("strip", &["p.out"]);
    shop.tool(
        "objcopy",
        &[
            "--strip-all",
            "--keep-section=.debug_*",
            "p.debug",
            "q.debug",
        ],
    );
    shop.tool("objcopy", &["--add-gnu-debuglink=p.debug", "p.out"]);
    assert_eq!(function_addresses(&program, "hidden"), [expected]);
}

#[test]
fn misspelt_functions_have_suggestions() {
    let shop = Workshop::new();
    let program = shop.build("p.cpp", CPP, &["-g"]);
    let mut symbols = ProgramSymbols::new();
    for (misspelt, meant) in [("swep", "sweep"), ("hiden", "hidden")] {
        assert!(symbols.function_addresses(&program, misspelt).is_empty());
        let similar = symbols.similar_functions(&program, misspelt);
        assert!(
            similar.iter().any(|name| name.starts_with(meant)),
            "{similar:?}"
        );
    }
    let absent = shop.path("absent");
    assert!(symbols.function_addresses(&absent, "main").is_empty());
    assert!(symbols.similar_functions(&absent, "main").is_empty());
}

#[test]
fn last_components() {
    for (name, expected) in [
        ("main", "main"),
        ("ns::grid::sweep", "sweep"),
        ("twice<int>", "twice"),
        ("std::vector<a::b, c<d::e> >::push_back", "push_back"),
        ("ns::list<a::b>::push<x::y>", "push"),
        ("ns::operator<< <int>", "operator<< <int>"),
        ("operator new[]", "operator new[]"),
        ("<a::B as c::D>::run", "run"),
        ("r::main::{closure#0}", "{closure#0}"),
        ("", ""),
    ] {
        assert_eq!(unqualified(name), expected, "{name}");
    }
}

#[test]
fn template_arguments_nobody_writes() {
    for (name, expected) in [
        ("vector<double, std::allocator<double> >", "vector<double>"),
        ("map<int, vector<a, std::allocator<a> >, std::less<int>, std::allocator<std::pair<int const, a> > >", "map<int, vector<a>>"),
        ("basic_string<char, std::char_traits<char>, std::allocator<char> >", "string"),
        ("Vec<f64, alloc::alloc::Global>", "Vec<f64>"),
        ("a, std::allocator<", "a"),
        ("a, std::less<ä", "a"),
    ] {
        assert_eq!(without_defaults(name), expected, "{name}");
    }
}

#[test]
fn long_template_arguments_are_left_out() {
    let long = "unsigned long, (unsigned long)32, (unsigned long)624";
    for (name, expected) in [
        ("main", "main".to_owned()),
        ("ns::list<int>::push", "ns::list<int>::push".to_owned()),
        (
            &format!("twister<{long}>::operator()"),
            "twister<...>::operator()".to_owned(),
        ),
        (
            &format!("a<b<{long}> >::c<int>::d"),
            "a<...>::c<int>::d".to_owned(),
        ),
        (
            &format!("<{long} as T>::run"),
            format!("<{long} as T>::run"),
        ),
        (
            "<polars_core::series::SeriesWrap<polars_core::chunked_array::ChunkedArray<f64>> as polars_core::series::SeriesTrait>::arg_sort",
            "<SeriesWrap as SeriesTrait>::arg_sort".to_owned(),
        ),
        (
            &format!("<rayon_core::thread_pool::ThreadPool>::install::<{long}>::{{closure#0}}"),
            "<rayon_core::thread_pool::ThreadPool>::install::<...>::{closure#0}".to_owned(),
        ),
        (
            "<alloc::boxed::Box<dyn Fn(u32) -> u32> as core::ops::Fn<u32>>::call",
            "<Box as Fn>::call".to_owned(),
        ),
        (
            "<polars_core::frame::sort::<f64>::{closure#0} as core::ops::function::FnMut<()>>::call_mut",
            "<sort::{closure#0} as FnMut>::call_mut".to_owned(),
        ),
        ("<a::b as c::d>::e", "<a::b as c::d>::e".to_owned()),
        ("ns::operator<< <int>", "ns::operator<< <int>".to_owned()),
        (&format!("cut<{long}"), format!("cut<{long}")),
        ("ä<ö>::ü", "ä<ö>::ü".to_owned()),
        ("", String::new()),
    ] {
        assert_eq!(short_arguments(name), expected, "{name}");
    }
}

/// Blocks of a vector are their owner's, whatever trait it grows by.
#[test]
fn functions_of_rusts_library_are_known_by_their_names() {
    for library in [
        "<alloc::raw_vec::RawVecInner>::finish_grow",
        "<alloc::vec::Vec<a::b> as core::clone::Clone>::clone",
        "alloc::slice::hack::to_vec::<u8>",
        "<hashbrown::raw::RawTableInner>::fallible_with_capacity::<alloc::alloc::Global>",
    ] {
        assert!(is_rust_library(library), "{library}");
    }
    for own in [
        "<alloc::vec::Vec<u32> as a::Gather>::gather",
        "<a::Series as core::clone::Clone>::clone",
        "allocate",
        "main",
        "<cut",
    ] {
        assert!(!is_rust_library(own), "{own}");
    }
}

#[test]
fn names_of_ghc_are_decoded() {
    for (raw, expected) in [
        (
            "containerszm0zi6zi4zi1_DataziMapziInternal_balanceL_info",
            "Data.Map.Internal.balanceL",
        ),
        ("Main_zdwgo1_info", "Main.$wgo1"),
        ("ghczmprim_GHCziTypes_ZMZN_closure", "GHC.Types.[]"),
        ("ghczmprim_GHCziTuple_Z3T_con_info", "GHC.Tuple.(,,)"),
        ("base_GHCziBase_zzipzu_info", "GHC.Base.zip_"),
    ] {
        assert_eq!(demangle(raw), expected);
    }
    // Not Haskell's, or damaged.
    for raw in [
        "my_module_info",
        "Z_get_info",
        "stg_upd_frame_info",
        "Main_work_info",
        "Main_zy_info",
        "Main_Z9999999999999999999T_info",
        "Main_z",
        "base_GHC_Z_info",
        "__info",
    ] {
        assert_eq!(demangle(raw), raw);
    }
}
