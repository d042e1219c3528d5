//! `--matrix FILE`: communication as a T x T table of comma-separated numbers or as a list
//! of edges `i j weight`. The file may come from anybody.
use anyhow::{anyhow, bail, Context, Result};
use hither_model::map::CommGraph;
use hither_profile::strip_control_characters;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most threads: twice as many as any machine has units.
const MOST_THREADS: usize = 8192;
/// Enough for a table of as many threads with a digit a cell.
const MOST_BYTES: u64 = 256 << 20;
/// Weights add up to at most 2^52, so that their products with distances are counted exactly.
const SUM_BITS: i32 = 52;
/// A weight that is not kept exactly has at least so many units: a thousandth of it is none.
const LEAST_UNITS: f64 = 512.0;

/// Reads a matrix, and in which unit it counts: 2^-n, where n is 0 for whole numbers.
///
/// # Errors
/// A sentence with the line and column of what is wrong.
pub fn read(path: &Path) -> Result<(CommGraph, i32)> {
    let text = read_text(path, "matrix")?;
    parse(&text).map_err(|e| anyhow!("the matrix {}, {e}", path.display()))
}

/// Reads the work of each thread: so many whole numbers, separated by blanks, commas or line ends.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn read_load(path: &Path, threads: usize) -> Result<Vec<u64>> {
    let (text, shown) = (read_text(path, "work of threads in")?, path.display());
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let fields =
        lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || COMMAS.contains(&c)));
    let number = |field: &str| {
        let read = field.parse::<u64>();
        read.map_err(|_| {
            let field: String = strip_control_characters(field).chars().take(20).collect();
            anyhow!("the work of threads in {shown}: \"{field}\" is not a whole number")
        })
    };
    let load: Result<Vec<u64>> = fields.filter(|f| !f.is_empty()).map(number).collect();
    let load = load?;
    if load.len() != threads {
        bail!(
            "the work of threads in {shown}: {} numbers for {threads} threads; give one for each",
            load.len()
        );
    }
    Ok(load)
}

/// The text of a file of numbers, without the mark that some editors begin files with.
fn read_text(path: &Path, what: &str) -> Result<String> {
    let shown = path.display();
    let failed = || format!("cannot read the {what} {shown}");
    if !path.metadata().with_context(failed)?.is_file() {
        bail!("the {what} {shown} is not a file; give a text file of numbers");
    }
    let mut text = Vec::new();
    let file = File::open(path).with_context(failed)?;
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut text)
        .with_context(failed)?;
    if text.len() as u64 > MOST_BYTES {
        bail!("the {what} {shown} is larger than {MOST_BYTES} bytes; give a list of edges without zeros");
    }
    let text = String::from_utf8(text);
    let text =
        text.map_err(|_| anyhow!("the {what} {shown} is not text; give a text file of numbers"))?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// A number and where it stands in its line.
struct MatrixCell {
    column: usize,
    value: f64,
}

/// A pair of threads and what they communicate.
type WeightedPair = (u32, u32, f64);
/// The same in units that can be added up exactly.
type CountedPair = (u32, u32, u64);

fn parse(text: &str) -> Result<(CommGraph, i32), String> {
    let lines = (1..).zip(text.lines());
    let lines = lines.map(|(at, line)| (at, line.split('#').next().unwrap_or("")));
    let lines = lines.filter(|(_, content)| !content.trim().is_empty());
    let rows = lines.clone().count();
    let first = lines.clone().next();
    let (line, first) = first.ok_or("it is empty; give a table or a list of edges")?;
    let commas = first.contains(COMMAS);
    let width = parse_cells(first, line, commas)?.len();
    if commas && (width, rows) == (3, 2) {
        return Err("two lines of three numbers may be two edges, or a table that lacks a line; separate the numbers of edges by blanks, or add the line".to_owned());
    }
    // Three numbers a line are edges, but a table where there are commas and three lines.
    let edges = width == 3 && !(commas && rows == 3);
    if !edges && rows > MOST_THREADS {
        return Err(format!(
            "it has {rows} lines, more than {MOST_THREADS} threads"
        ));
    }
    let mut threads = if edges { 0 } else { rows };
    let mut pairs = Vec::new();
    for (row, (line, content)) in (0..).zip(lines) {
        if commas != content.contains(COMMAS) {
            let has = if commas { "lacks" } else { "has" };
            return Err(format!("line {line} {has} commas, unlike the first"));
        }
        let cells = parse_cells(content, line, commas)?;
        if edges {
            let pair = parse_edge(&cells, line)?;
            threads = threads.max(pair.0.max(pair.1) as usize + 1);
            pairs.push(pair);
        } else if cells.len() == threads {
            let cells = (0..).zip(cells).filter(|(_, cell)| cell.value > 0.0);
            pairs.extend(cells.map(|(column, cell)| (row, column, cell.value)));
        } else {
            return Err(format!(
                "line {line}: {} numbers in a table of {threads} lines, which is not square",
                cells.len()
            ));
        }
    }
    if !edges {
        once_if_symmetric(&mut pairs);
    }
    let (pairs, fraction_bits) = fixed_point(&pairs)?;
    // Both directions of a pair add up.
    Ok((CommGraph::new(threads, pairs), fraction_bits))
}

const COMMAS: [char; 2] = [',', ';'];

/// The numbers of a line; column counts characters from 1, as editors do.
fn parse_cells(content: &str, line: usize, separated: bool) -> Result<Vec<MatrixCell>, String> {
    let split = |c: char| match separated {
        true => COMMAS.contains(&c),
        false => c.is_whitespace(),
    };
    let mut out = Vec::new();
    let mut column = 1;
    for field in content.split(split) {
        let text = field.trim();
        let here = column + field.chars().take_while(|c| c.is_whitespace()).count();
        column += field.chars().count() + 1;
        if text.is_empty() && !separated {
            continue;
        }
        out.push(MatrixCell {
            column: here,
            value: number(text).map_err(|e| format!("line {line}, column {here}: {e}"))?,
        });
    }
    Ok(out)
}

fn number(text: &str) -> Result<f64, String> {
    let shown: String = strip_control_characters(text).chars().take(20).collect();
    let value: f64 = match text {
        "" => return Err("a number is missing".to_owned()),
        _ => text
            .parse()
            .map_err(|_| format!("\"{shown}\" is not a number"))?,
    };
    match value {
        v if !v.is_finite() => Err(format!("\"{shown}\" is not a finite number")),
        v if v < 0.0 => Err(format!("{shown} is negative")),
        v => Ok(v),
    }
}

fn parse_edge(cells: &[MatrixCell], line: usize) -> Result<WeightedPair, String> {
    let [i, j, weight] = cells else {
        let count = cells.len();
        return Err(format!(
            "line {line}: {count} numbers where an edge has three"
        ));
    };
    let thread = |cell: &MatrixCell| {
        if cell.value.fract() == 0.0 && cell.value < MOST_THREADS as f64 {
            return Ok(cell.value as u32);
        }
        let (column, value, last) = (cell.column, cell.value, MOST_THREADS - 1);
        Err(format!(
            "line {line}, column {column}: {value} is not the number of a thread, 0 to {last}"
        ))
    };
    Ok((thread(i)?, thread(j)?, weight.value))
}

/// A table that is the same on both sides of its diagonal says each pair twice: one side counts.
fn once_if_symmetric(pairs: &mut Vec<WeightedPair>) {
    let side = |above: bool| -> BTreeMap<(u32, u32), u64> {
        let of_side = pairs.iter().filter(|(i, j, _)| (i < j) == above && i != j);
        of_side
            .map(|&(i, j, w)| ((i.min(j), i.max(j)), w.to_bits()))
            .collect()
    };
    if side(true) == side(false) {
        pairs.retain(|(i, j, _)| i <= j);
    }
}

/// Weights as whole numbers of a unit 2^-n, and n: the largest unit of which all are multiples, so that the
/// objectives of several files are sums of the same. It is larger where the sum of many digits could not be
/// counted: relations are kept then, but for what has no weight beside the rest.
fn fixed_point(pairs: &[WeightedPair]) -> Result<(Vec<CountedPair>, i32), String> {
    let weights = || pairs.iter().map(|p| p.2).filter(|w| *w > 0.0);
    let total: f64 = weights().sum();
    let digits = weights().map(binary_digits).max().unwrap_or(0);
    let most = SUM_BITS - total.max(f64::MIN_POSITIVE).log2().ceil() as i32;
    let bits = digits.min(most);
    let units = |w: f64| (w * 2f64.powi(bits)).round();
    let kept = |w: f64| units(w) >= LEAST_UNITS || units(w) * 2f64.powi(-bits) == w;
    if !total.is_finite() || !weights().all(kept) {
        let (least, largest) = weights().fold((f64::MAX, 0.0f64), |(l, m), w| (l.min(w), m.max(w)));
        return Err(format!("weights from {least:e} to {largest:e} are too far apart to be added up; leave out those that do not matter"));
    }
    let scaled = |&(i, j, w): &WeightedPair| (i, j, units(w) as u64);
    Ok((pairs.iter().map(scaled).collect(), bits))
}

/// How many binary digits behind the point a number has.
fn binary_digits(number: f64) -> i32 {
    let bits = number.to_bits();
    let (exponent, mantissa) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let (lowest, mantissa) = match exponent {
        0 => (-1074, mantissa),
        _ => (exponent - 1075, mantissa | 1 << 52),
    };
    let lowest = lowest + mantissa.trailing_zeros() as i32;
    (-lowest).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> (usize, Vec<(usize, usize, u64)>) {
        let (graph, fraction_bits) = parse(text).expect("a matrix");
        assert_eq!(fraction_bits, 0, "{text}");
        (graph.threads(), graph.pairs().collect())
    }

    #[test]
    fn weights_keep_their_relation_and_their_unit() {
        let check = |text: &str, bits: i32, want: &[u64]| {
            let (graph, fraction_bits) = parse(text).expect(text);
            let units: Vec<u64> = graph.pairs().map(|p| p.2).collect();
            assert_eq!((fraction_bits, units), (bits, want.to_vec()), "{text}");
        };
        check("0 1 0.5\n0 2 0.25\n", 2, &[2, 1]);
        check("0 1 3.5\n0 2 1000000\n", 1, &[7, 2_000_000]);
        check("0 1 1\n0 2 2e15\n", 0, &[1, 2_000_000_000_000_000]);
        check(
            "0 1 1e-20\n0 2 2e-20\n",
            116,
            &[830_767_497_365_572, 1_661_534_994_731_145],
        );
        // 0.1 has 55 binary digits, of which 52 less those of the sum are kept.
        check(
            "0 1 0.1\n0 2 6.4\n",
            49,
            &[56_294_995_342_131, 3_602_879_701_896_397],
        );
        // Too large to be added up, but none is lost.
        check(
            "0 1 1e18\n0 2 4e18\n",
            -11,
            &[488_281_250_000_000, 1_953_125_000_000_000],
        );
        for text in [
            "0 1 1\n0 2 1e17\n",
            "0 1 1e-9\n0 2 1e9\n",
            "0 1 1e308\n0 2 1e308\n",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("too far apart"), "{error}");
        }
    }

    #[test]
    fn tables_and_lists() {
        let check = |text: &str, threads: usize, want: &[(usize, usize, u64)]| {
            assert_eq!(pairs(text), (threads, want.to_vec()), "{text}");
        };
        check("0,5\n5,0\n", 2, &[(0, 1, 5)]);
        check("0,5\n4,0\n", 2, &[(0, 1, 9)]);
        check("0;5;1\n0;0;0\n0;0;0", 3, &[(0, 1, 5), (0, 2, 1)]);
        check(
            "# made by hand\n0 5 0 0\n\n0 0 0 0 # last\n0 0 0 1\n0 0 1 7\n",
            4,
            &[(0, 1, 5), (2, 3, 2)],
        );
        check("0 1 5\n2 0 3\n", 3, &[(0, 1, 5), (0, 2, 3)]);
        check(
            "0 1 5\n1 2 3\n2 0 1\n",
            3,
            &[(0, 1, 5), (0, 2, 1), (1, 2, 3)],
        );
        check("0 5\n1 0\n", 2, &[(0, 1, 6)]);
        check(
            "0,1,5\n2,0,3\n0,3,1\n0,1,1\n",
            4,
            &[(0, 1, 6), (0, 2, 3), (0, 3, 1)],
        );
        // Threads at the end that communicate with none.
        check("0 1 5\n5 5 0\n", 6, &[(0, 1, 5)]);
        check("0,5,0,0\n5,0,0,0\n0,0,0,0\n0,0,0,0\n", 4, &[(0, 1, 5)]);
        check("7\n", 1, &[]);
        check("0 1 0.0\n", 2, &[]);
        check("\r\n0,2\r\n2,0\r\n", 2, &[(0, 1, 2)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let check = |text: &str, part: &str| {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        };
        check("", "empty");
        check("# nothing\n", "empty");
        check("0,1\n1,x\n", "line 2, column 3: \"x\" is not a number");
        check("0,1\n1,-4\n", "line 2, column 3: -4 is negative");
        check("0,1\n1,\n", "line 2, column 3: a number is missing");
        check("0 1 nan\n", "line 1, column 5: \"nan\" is not a finite");
        check("0 1 1e999\n", "not a finite");
        check(
            "0,1,2,3\n1,2,3,4\n",
            "line 1: 4 numbers in a table of 2 lines",
        );
        check("0,1,2,3\n1,2,3,4\n1,2\n1,2,3,4\n", "line 3: 2 numbers");
        check(
            "0 1 5\n0 99999 5\n",
            "line 2, column 3: 99999 is not the number",
        );
        check("0,1,5\n1,0,3\n", "two edges, or a table that lacks a line");
        check("0.5 1 5\n", "line 1, column 1: 0.5 is not the number");
        check("0 1 5\n0,1,5\n", "line 2 has commas");
        check("0 1 5\n0 1\n", "line 2: 2 numbers where an edge has three");
    }
}
