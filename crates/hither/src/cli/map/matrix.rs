//! `--matrix FILE`: communication as a T x T table of comma-separated numbers or as a list
//! of edges `i j weight`. The file may come from anybody.
use crate::map::Graph;
use anyhow::{anyhow, bail, Context, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most threads; a table of so many takes half a gigabyte as text.
const MOST_THREADS: usize = 16_384;
const MOST_BYTES: u64 = 1 << 30;
/// Sums of weights stay below 2^62, as those of a profile do.
const MOST_WEIGHT: f64 = (1u64 << 40) as f64;
/// Weights that are not whole numbers are scaled so that the largest becomes this.
const SCALED_MAX: f64 = (1u64 << 30) as f64;

/// Reads a matrix.
///
/// # Errors
/// A sentence with the line and column of what is wrong.
pub fn read(path: &Path) -> Result<Graph> {
    let shown = path.display();
    let data = path
        .metadata()
        .with_context(|| format!("cannot read the matrix {shown}"))?;
    if !data.is_file() {
        bail!("the matrix {shown} is not a file; give a text file with a table or a list of edges");
    }
    let file = File::open(path).with_context(|| format!("cannot read the matrix {shown}"))?;
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read the matrix {shown}"))?;
    if text.len() as u64 > MOST_BYTES {
        bail!("the matrix {shown} is larger than {MOST_BYTES} bytes; give a list of edges without zeros");
    }
    let text = String::from_utf8(text).map_err(|_| {
        anyhow!("the matrix {shown} is not text; give a table of numbers or a list of edges")
    })?;
    parse(&text).map_err(|e| anyhow!("the matrix {shown}, {e}"))
}

/// A number and where it stands.
struct Cell {
    line: usize,
    column: usize,
    value: f64,
}

fn parse(text: &str) -> Result<Graph, String> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut commas = false;
    for (at, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or("");
        if content.trim().is_empty() {
            continue;
        }
        let separated = content.contains([',', ';']);
        if rows.is_empty() {
            commas = separated;
        } else if commas != separated {
            return Err(format!(
                "line {}: {} a comma, unlike the lines before",
                at + 1,
                if separated { "has" } else { "lacks" }
            ));
        }
        rows.push(cells(content, at + 1, separated)?);
        if rows[0].len() > MOST_THREADS {
            return Err(format!("line {}: more than {MOST_THREADS} columns", at + 1));
        }
    }
    // Three numbers a line are edges, but a table where there are commas and three lines.
    let edges = rows.iter().all(|row| row.len() == 3) && !(commas && rows.len() == 3);
    match rows.is_empty() {
        true => Err("it is empty; give a table or a list of edges".to_owned()),
        false if edges => of_edges(&rows),
        false => of_table(&rows),
    }
}

/// The numbers of a line; column counts characters from 1, as editors do.
fn cells(content: &str, line: usize, separated: bool) -> Result<Vec<Cell>, String> {
    let split = |c: char| match separated {
        true => c == ',' || c == ';',
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
        out.push(Cell {
            line,
            column: here,
            value: number(text).map_err(|e| format!("line {line}, column {here}: {e}"))?,
        });
    }
    Ok(out)
}

fn number(text: &str) -> Result<f64, String> {
    let shown: String = text.chars().take(20).filter(|c| !c.is_control()).collect();
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

fn of_table(rows: &[Vec<Cell>]) -> Result<Graph, String> {
    let threads = rows.len();
    for row in rows {
        if row.len() != threads {
            let line = row.first().map_or(0, |c| c.line);
            return Err(format!(
                "line {line}: {} numbers in a table of {threads} lines, which is not square",
                row.len()
            ));
        }
    }
    let triples = rows.iter().enumerate().flat_map(|(i, row)| {
        let row = row.iter().enumerate();
        row.map(move |(j, cell)| (i as u32, j as u32, cell))
    });
    Ok(graph(threads, triples))
}

fn of_edges(rows: &[Vec<Cell>]) -> Result<Graph, String> {
    let mut threads = 0;
    let mut triples = Vec::new();
    for row in rows {
        let mut ends = [0; 2];
        for (end, cell) in ends.iter_mut().zip(row) {
            if cell.value.fract() != 0.0 || cell.value >= MOST_THREADS as f64 {
                return Err(format!(
                    "line {}, column {}: {} is not the number of a thread, 0 to {}",
                    cell.line,
                    cell.column,
                    cell.value,
                    MOST_THREADS - 1
                ));
            }
            *end = cell.value as u32;
            threads = threads.max(*end as usize + 1);
        }
        triples.push((ends[0], ends[1], &row[2]));
    }
    Ok(graph(threads, triples.into_iter()))
}

/// Both directions of a pair add up. Whole numbers count as they are; others, and numbers
/// too large to be summed, are scaled.
fn graph<'a>(threads: usize, triples: impl Iterator<Item = (u32, u32, &'a Cell)> + Clone) -> Graph {
    let values = triples.clone().map(|(_, _, cell)| cell.value);
    let max = values.clone().fold(0.0, f64::max);
    let whole = values.clone().all(|v| v.fract() == 0.0) && max <= MOST_WEIGHT;
    let scale = if whole { 1.0 } else { SCALED_MAX / max };
    Graph::new(
        threads,
        triples.map(|(i, j, cell)| (i, j, (cell.value * scale).round() as u64)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> (usize, Vec<(usize, usize, u64)>) {
        let graph = parse(text).expect("a matrix");
        (graph.threads(), graph.pairs().collect())
    }

    #[test]
    fn tables_and_lists() {
        let check = |text: &str, threads: usize, want: &[(usize, usize, u64)]| {
            assert_eq!(pairs(text), (threads, want.to_vec()), "{text}");
        };
        check("0,5\n5,0\n", 2, &[(0, 1, 10)]);
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
        check("0,1,5\n2,0,3\n", 3, &[(0, 1, 5), (0, 2, 3)]);
        check("7\n", 1, &[]);
        check(
            "0 1 0.5\n0 2 0.25\n",
            3,
            &[(0, 1, 1 << 30), (0, 2, 1 << 29)],
        );
        check("0 1 0.0\n", 2, &[]);
        check("\r\n0,2\r\n2,0\r\n", 2, &[(0, 1, 4)]);
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
        check("0.5 1 5\n", "line 1, column 1: 0.5 is not the number");
        check("0 1 5\n0,1,5\n", "line 2: has a comma");
    }
}
