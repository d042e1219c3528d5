//! Damaged files must give names or nothing, never a panic, a hang or a huge allocation.
use super::Workshop;
use crate::trace::symbolizer::Symbolizer;
use crate::trace::symbols::ProgramSymbols;
use hither_model::rng::Rng;
use std::path::Path;

const CPP: &str = r#"
#include <vector>
namespace ns { struct cell { long id; static int hits[4]; }; int cell::hits[4]; double grid[8][9]; }
std::vector<double> table;
int main(int c, char **) { static ns::cell own[3]; table.resize(c); own[0].id = c; return table.size() + ns::grid[1][c]; }
"#;

fn ask_everything(program: &Path) {
    let mut symbols = ProgramSymbols::new();
    let objects = symbols.static_objects(program);
    let vaddrs: Vec<u64> = objects.iter().take(50).map(|object| object.vaddr).collect();
    symbols.members(program, &vaddrs);
    for pc in (0x1000..0x3000).step_by(97) {
        symbols.source_line(program, pc);
        symbols.allocation_name(&[(program.to_owned(), pc)]);
    }
    let _ = ProgramSymbols::new().function_addresses(program, "main");
}

#[test]
fn random_damage() {
    let shop = Workshop::new();
    for options in [&["-g"][..], &["-gdwarf-4"], &["-g", "-gz"]] {
        let program = shop.build("p.cpp", CPP, options);
        let whole = std::fs::read(&program).expect("just built");
        let mut random = Rng::new(0x9e37_79b9_7f4a_7c15);
        let damaged = shop.path("damaged");
        for round in 0..40 {
            let mut bytes = whole.clone();
            // From a few bits to a thousand bytes; every fourth time in the headers.
            for _ in 0..1 << (round % 11) {
                let range = if round % 4 == 0 {
                    4096.min(bytes.len())
                } else {
                    bytes.len()
                };
                let at = random.below(range);
                bytes[at] ^= 1 << random.below(8);
            }
            if round % 5 == 0 {
                bytes.truncate(random.below(whole.len()));
            }
            std::fs::write(&damaged, &bytes).expect("can write");
            ask_everything(&damaged);
        }
    }
}

#[test]
fn names_that_grow_without_end() {
    // Each pair doubles the text before it: 2^60 characters if expanded.
    let mut name = String::from("_Z1fI1aE");
    for i in 0..60 {
        let digit = char::from_digit(i % 36, 36)
            .expect("below 36")
            .to_ascii_uppercase();
        name.push_str(&format!("1bIS{digit}_S{digit}_E"));
    }
    for raw in [
        name.as_str(),
        &"_ZN".repeat(2000),
        &"_Z".repeat(9),
        &"x".repeat(100_000),
        "_ZN99999999999999999999a",
        "_ZN9ab",
        "_ZSt",
        "_ZN3\u{e4}",
        "_R",
        "@",
        "",
    ] {
        let text = super::super::demangle::demangle(raw);
        assert!(text.len() <= 4096, "{}", text.len());
    }
}

#[test]
fn names_that_cannot_be_read_keep_their_beginning() {
    use super::super::demangle::demangle;
    let swap = "_ZSt4swapIiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleIS4_ESt18is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_";
    assert_eq!(demangle(swap), "std::swap");
    assert_eq!(demangle("_ZN2ns4gridIXsrE5sweepEi"), "ns::grid");
    assert_eq!(demangle("_Znothing"), "_Znothing");
}
