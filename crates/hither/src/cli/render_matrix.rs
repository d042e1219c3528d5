//! The communication matrix in the terminal: each cell a shade, the brightest the pair
//! that communicates most. Too many threads for the width are put together in bins.
use super::style::TerminalStyle;
use hither_model::metrics::communication::UpperTriangle;

const ASCII: [char; 6] = [' ', '.', ':', '+', '#', '@'];
const BLOCKS: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Rows of a matrix without colour; with colour one line of text shows two rows.
const MAX_ROWS: usize = 32;
/// Cells of one row never need more than this.
const MAX_COLUMNS: usize = 128;

/// Draws the matrix of these threads, in order.
pub fn render(cells: &UpperTriangle, shown: &[u32], style: TerminalStyle) -> String {
    let (label, threads) = (6, shown.len());
    // The half block that colour mode needs is not ASCII.
    let shaded = style.colour && style.unicode;
    let room = style.width.saturating_sub(label + 1).clamp(8, MAX_COLUMNS);
    let limit = if shaded { room } else { room.min(MAX_ROWS) };
    let per_bin = threads.div_ceil(limit).max(1);
    let bins = threads.div_ceil(per_bin);
    let grid = shares(cells, shown, per_bin, bins);
    // Two columns for a cell make it about square.
    let columns = if bins * 2 <= room { 2 } else { 1 };
    let mut out = String::new();
    let lines = if shaded { bins.div_ceil(2) } else { bins };
    for line in 0..lines {
        let row = if shaded { line * 2 } else { line };
        out.push_str(&format!("{:>label$} ", shown[row * per_bin]));
        for column in 0..bins {
            let text = if shaded {
                let below = grid.get((row + 1) * bins + column).copied();
                half_block(grid[row * bins + column], below, columns)
            } else {
                let ramp: &[char] = if style.unicode { &BLOCKS } else { &ASCII };
                let shade = shade(grid[row * bins + column], ramp.len());
                std::iter::repeat_n(ramp[shade], columns).collect()
            };
            out.push_str(&text);
        }
        if shaded {
            out.push_str("\x1b[0m");
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    if per_bin > 1 {
        out.push_str(&format!(
            "{:label$} (a cell is {per_bin} x {per_bin} threads)\n",
            ""
        ));
    }
    out
}

/// Mean events per pair in each bin, as a share of the largest bin.
fn shares(cells: &UpperTriangle, shown: &[u32], per_bin: usize, bins: usize) -> Vec<f64> {
    let mut grid = vec![0.0; bins * bins];
    let bin = |thread: u32| shown.binary_search(&thread).ok().map(|at| at / per_bin);
    for &(i, j, events) in &cells.0 {
        let (Some(a), Some(b)) = (bin(i), bin(j)) else {
            continue;
        };
        grid[a * bins + b] += events as f64;
        grid[b * bins + a] += events as f64;
    }
    // The last bin may hold fewer threads than the others.
    let held = |bin: usize| (shown.len() - bin * per_bin).min(per_bin) as f64;
    for a in 0..bins {
        for b in 0..bins {
            grid[a * bins + b] /= held(a) * held(b);
        }
    }
    let max = grid.iter().copied().fold(0.0, f64::max);
    if max > 0.0 {
        grid.iter_mut().for_each(|c| *c /= max);
    }
    grid
}

/// Shade 0 is for nothing at all: a little communication shows.
fn shade(share: f64, shades: usize) -> usize {
    if share <= 0.0 {
        return 0;
    }
    ((share * (shades - 1) as f64).round() as usize).clamp(1, shades - 1)
}

/// Two cells, one above the other, in the 24 greys of a 256-colour terminal.
fn half_block(above: f64, below: Option<f64>, columns: usize) -> String {
    let grey = |share| 232 + shade(share, 24);
    let block = "▀".repeat(columns);
    match below {
        Some(below) => format!("\x1b[38;5;{};48;5;{}m{block}", grey(above), grey(below)),
        None => format!("\x1b[0;38;5;{}m{block}", grey(above)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(width: usize, unicode: bool) -> TerminalStyle {
        TerminalStyle {
            width,
            height: 40,
            colour: false,
            unicode,
        }
    }

    #[test]
    fn every_cell_has_its_shade() {
        let cells = UpperTriangle(vec![(0, 1, 100), (1, 2, 1), (0, 2, 50)]);
        let want = "     0   @@##\n     1 @@  ..\n     2 ##..\n";
        // 50 of 100 is 2.5 steps of 5, rounded away from zero: the fourth shade.
        assert_eq!(
            render(&cells, &[0, 1, 2], plain(80, false)),
            want.replace("##", "++")
        );
        let drawn = render(&cells, &[0, 1, 2], plain(80, true));
        assert!(drawn.contains("██") && drawn.contains("░░"), "{drawn}");
    }

    #[test]
    fn rows_of_threads_that_are_not_shown_are_left_out() {
        let cells = UpperTriangle(vec![(1, 4, 100), (2, 4, 500)]);
        let want = "     1   @@\n     4 @@\n";
        assert_eq!(render(&cells, &[1, 4], plain(80, false)), want);
    }

    #[test]
    fn sixty_four_threads_fit_in_eighty_columns() {
        let cells = UpperTriangle((0..63).map(|i| (i, i + 1, 10)).collect());
        for colour in [false, true] {
            let style = TerminalStyle {
                colour,
                ..plain(80, true)
            };
            let drawn = render(&cells, &Vec::from_iter(0..64), style);
            for line in drawn.lines() {
                let mut escape = false;
                let seen = line.chars().filter(|&c| {
                    let was = escape || c == '\x1b';
                    escape = was && c != 'm';
                    !was
                });
                assert!(seen.count() <= 80, "{line}");
            }
            assert!(drawn.lines().count() <= 34);
        }
    }

    #[test]
    fn no_threads_and_many_threads_draw() {
        assert_eq!(render(&UpperTriangle::default(), &[], plain(80, true)), "");
        let all = Vec::from_iter(0..4096);
        let drawn = render(&UpperTriangle(vec![(0, 4095, 1)]), &all, plain(80, true));
        assert!(drawn.contains("a cell is 128 x 128 threads"), "{drawn}");
    }
}
