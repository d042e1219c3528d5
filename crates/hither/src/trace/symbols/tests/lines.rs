//! Source lines of programs with several compilation units.
use super::Workshop;
use crate::trace::symbols::line_table::{frames_of, new_context};
use crate::trace::symbols::ModuleSymbols;
use std::path::PathBuf;

const MAIN: &str = "
int twice(int n);
int thrice(int n);
static inline int both(int n) { return twice(n) + thrice(n); }
int main(int c, char **v) { (void)v; return both(c); }
";
const TWICE: &str = "
static inline int add(int a, int b) { return a + b; }
int twice(int n) { return add(n, n); }
";
const THRICE: &str = "
double table[4];
int twice(int n);
int thrice(int n) { table[n & 3] += n; return twice(n) + n; }
";

fn build(shop: &Workshop, options: &[&str]) -> PathBuf {
    let more = [("twice.c", TWICE), ("thrice.c", THRICE)];
    let more = more.map(|(name, text)| shop.write(name, text));
    let mut options = options.to_vec();
    options.extend(more.iter().map(|path| path.to_str().expect("UTF-8")));
    shop.build("main.c", MAIN, &options)
}

/// With link-time optimisation functions are inlined from other units.
#[test]
fn units_read_alone_give_the_lines_that_all_give_together() {
    for options in [
        &["-g", "-O2"][..],
        &["-gdwarf-4", "-O1"],
        &["-g", "-O2", "-flto"],
        &["-g", "-O2", "-fdebug-types-section", "-gz"],
    ] {
        let shop = Workshop::new();
        let module = ModuleSymbols::open(&build(&shop, options)).expect("ELF");
        let debug = module.debug.as_ref().expect("-g");
        let all = new_context(debug.dwarf.clone());
        let code = module
            .elf
            .functions
            .iter()
            .map(|f| f.vaddr..f.vaddr + f.size);
        let code: Vec<u64> = code.flatten().collect();
        let known = code.iter().filter(|pc| !module.frames(**pc).is_empty());
        assert!(known.count() > 20, "{options:?}");
        for pc in code {
            let expected = frames_of(&all, pc);
            assert_eq!(module.frames(pc), expected, "{options:?} {pc:#x}");
        }
    }
}

/// Those of a C library have two thousand units.
#[test]
fn only_the_unit_of_an_address_is_kept_in_memory() {
    let shop = Workshop::new();
    let module = ModuleSymbols::open(&build(&shop, &["-g", "-O1"])).expect("ELF");
    let debug = module.debug.as_ref().expect("-g");
    let main = module.elf.functions.iter().find(|f| f.raw == "main");
    assert!(!module.frames(main.expect("it is there").vaddr).is_empty());
    assert_eq!((debug.len(), debug.parsed_units()), (3, 1));
    assert!(!module.statics().is_empty());
    assert_eq!(debug.parsed_units(), 0);
}
