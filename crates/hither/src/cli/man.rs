//! Man pages. clap_mangen writes the sections that follow from the arguments; the text after
//! the options, which it would fill into one paragraph, becomes NOTES and EXAMPLES here.
use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;

/// What clap_mangen puts at the head of every section, and roff needs once.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// Lines of the help text that belong together.
#[derive(Debug, Default, PartialEq)]
struct Block {
    text: String,
    entries: Vec<Entry>,
}

/// An indented line: a command and its comment, or a word and its meaning.
#[derive(Debug, PartialEq)]
struct Entry {
    tag: String,
    comment: String,
}

/// One page for the program and one for each visible command.
///
/// # Errors
/// When a file cannot be written.
pub fn write_pages(command: Command, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.render_version();
    let all = command.get_subcommands();
    let verbs: Vec<&Command> = all.filter(|verb| !verb.is_hide_set()).collect();
    let names: Vec<String> = verbs.iter().map(|verb| page_name(verb)).collect();
    for verb in verbs {
        write_page(verb, &version, &["hither".to_string()], folder)?;
    }
    write_page(&command, &version, &names, folder)
}

fn page_name(command: &Command) -> String {
    let name = command.get_display_name().unwrap_or(command.get_name());
    name.to_string()
}

fn write_page(command: &Command, version: &str, see: &[String], folder: &Path) -> io::Result<()> {
    let man = Man::new(command.clone()).source(version.trim_end());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let help = command.get_after_help().map(ToString::to_string);
    after_help(&blocks(&help.unwrap_or_default())).to_writer(&mut page)?;
    let mut end = Roff::new();
    end.control("SH", ["SEE ALSO"]);
    let pages: Vec<String> = see.iter().map(|name| format!("{name}(1)")).collect();
    end.text([roman(pages.join(", "))]);
    end.to_writer(&mut page)?;
    let page = String::from_utf8_lossy(&page).replace(PREAMBLE, "");
    let file = folder.join(page_name(command) + ".1");
    fs::write(file, format!("{PREAMBLE}{page}"))
}

/// A block ends at an empty line, and where text follows entries. Lines that are indented
/// by two spaces are entries; those indented further continue the comment before them.
fn blocks(help: &str) -> Vec<Block> {
    let mut blocks = vec![Block::default()];
    for line in help.lines() {
        let last = blocks.last_mut().expect("one at least");
        let words = line.trim();
        match line.len() - line.trim_start().len() {
            _ if words.is_empty() => blocks.push(Block::default()),
            0 if last.entries.is_empty() => append(&mut last.text, words),
            0 => blocks.push(Block {
                text: words.to_string(),
                entries: Vec::new(),
            }),
            1 | 2 => last.entries.push(entry(words)),
            _ => match last.entries.last_mut() {
                Some(entry) => append(&mut entry.comment, words),
                None => append(&mut last.text, words),
            },
        }
    }
    blocks.retain(|block| *block != Block::default());
    blocks
}

fn append(text: &mut String, words: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(words);
}

/// Two spaces or more separate a comment.
fn entry(line: &str) -> Entry {
    let (tag, comment) = line.split_once("  ").unwrap_or((line, ""));
    Entry {
        tag: tag.to_string(),
        comment: comment.trim().to_string(),
    }
}

fn after_help(blocks: &[Block]) -> Roff {
    let is_examples = |block: &&Block| block.text == "Examples:";
    let mut roff = Roff::new();
    for (i, note) in blocks.iter().filter(|b| !is_examples(b)).enumerate() {
        if i == 0 {
            roff.control("SH", ["NOTES"]);
        } else {
            roff.control("PP", []);
        }
        roff.text([roman(&note.text)]);
        list(&mut roff, &note.entries);
    }
    for examples in blocks.iter().filter(is_examples) {
        roff.control("SH", ["EXAMPLES"]);
        list(&mut roff, &examples.entries);
    }
    roff
}

fn list(roff: &mut Roff, entries: &[Entry]) {
    for entry in entries {
        roff.control("TP", []);
        roff.text([bold(&entry.tag)]);
        if !entry.comment.is_empty() {
            roff.text([roman(&entry.comment)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    const HELP: &str = "\
Examples:
  hither trace -- ./app --size 1   profile in app.hither
  hither trace -o a -- ./app
                                   the app's profile,
                                   in a.hither
  hither trace 'a b'

Words:
  near   on the same
         node
Other words:
  far    elsewhere

The exit status is
the program's.";

    fn pages(command: Command) -> (tempfile::TempDir, Vec<(String, String)>) {
        let folder = tempfile::tempdir().unwrap();
        write_pages(command, folder.path()).unwrap();
        let files = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
        let mut pages: Vec<(String, String)> = files
            .map(|file| {
                let name = file.file_name().into_string().unwrap();
                (name, fs::read_to_string(file.path()).unwrap())
            })
            .collect();
        pages.sort();
        (folder, pages)
    }

    fn sample() -> Command {
        let trace = Command::new("trace").arg(Arg::new("slice").long("slice"));
        Command::new("hither")
            .version("1.2")
            .subcommand(trace.after_help(HELP))
            .subcommand(Command::new("secret").hide(true))
    }

    #[test]
    fn a_page_per_visible_command() {
        let (_folder, pages) = pages(sample());
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["hither-trace.1", "hither.1"]);
        assert!(pages[0].1.contains("slice"), "{}", pages[0].1);
        assert!(pages[0].1.contains("hither 1.2"), "{}", pages[0].1);
        assert!(
            pages[1].1.ends_with("hither\\-trace(1)\n"),
            "{}",
            pages[1].1
        );
    }

    #[test]
    fn examples_are_a_command_and_its_comment_a_line_each() {
        let (_folder, pages) = pages(sample());
        let (_, end) = pages[0].1.split_once(".SH NOTES\n").unwrap();
        let expected = "\
Words:
.TP
\\fBnear\\fR
on the same node
.PP
Other words:
.TP
\\fBfar\\fR
elsewhere
.PP
The exit status is the program\\*(Aqs.
.SH EXAMPLES
.TP
\\fBhither trace \\-\\- ./app \\-\\-size 1\\fR
profile in app.hither
.TP
\\fBhither trace \\-o a \\-\\- ./app\\fR
the app\\*(Aqs profile, in a.hither
.TP
\\fBhither trace \\*(Aqa b\\*(Aq\\fR
.SH \"SEE ALSO\"
hither(1)
";
        assert_eq!(end, expected);
    }

    #[test]
    fn every_verb_has_examples_that_are_commands_and_no_other_section() {
        use clap::CommandFactory;
        let (_folder, pages) = pages(crate::cli::CommandLine::command());
        assert!(pages.len() > 10, "{}", pages.len());
        for (name, page) in pages {
            assert!(!page.contains("EXTRA"), "{name}:\n{page}");
            assert_eq!(page.matches(PREAMBLE).count(), 1, "{name}:\n{page}");
            if ["hither.1", "hither-completions.1"].contains(&name.as_str()) {
                continue;
            }
            let (_, examples) = page.split_once(".SH EXAMPLES\n").expect(&name);
            let (examples, _) = examples.split_once(".SH").expect(&name);
            let verb = name["hither-".len()..].trim_end_matches(".1");
            let commands = examples.matches(".TP\n").count();
            assert!(commands > 1, "{name}:\n{examples}");
            for tag in examples.split(".TP\n").skip(1) {
                let command = tag.lines().next().unwrap();
                assert!(
                    command.contains("hither ") && examples.contains(&format!("hither {verb}")),
                    "{name}: {command}"
                );
            }
        }
    }

    /// A line that roff would take for a request, or that groff complains about.
    #[test]
    fn groff_has_nothing_to_complain_about() {
        use clap::CommandFactory;
        let (folder, pages) = pages(crate::cli::CommandLine::command());
        for (name, _) in pages {
            let mut groff = std::process::Command::new("groff");
            groff.args(["-man", "-Tutf8", "-ww", "-z"]);
            let Ok(done) = groff.arg(folder.path().join(&name)).output() else {
                eprintln!("skipped groff_has_nothing_to_complain_about: groff is not installed");
                return;
            };
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && said.is_empty(), "{name}: {said}");
        }
    }
}
