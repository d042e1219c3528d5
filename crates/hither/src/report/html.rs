//! The file: shell, style, program and data. The data cannot end its element, and the
//! policy in the head lets no other script run and nothing be fetched.
use super::page::ReportPage;
use askama::Template;

const SCRIPT: &str = include_str!("../../../../report-ui/dist/report.js");
const STYLE: &str = include_str!("../../../../report-ui/dist/report.css");
/// Hashes of the two for the content security policy, made with the bundle.
const POLICY: &str = include_str!("../../../../report-ui/dist/policy.txt");

#[derive(Template)]
#[template(path = "report.html")]
struct HtmlShell<'a> {
    title: &'a str,
    policy: &'a str,
    style: &'a str,
    script: &'a str,
    data: &'a str,
}

/// The page as one file.
///
/// # Errors
/// None in practice: the data can be written as JSON, and the shell has what it names.
pub fn render_html(page: &ReportPage) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let data = escape_script_data(&serde_json::to_string(page)?);
    let shell = HtmlShell {
        title: &page.subject.run.command,
        policy: POLICY.trim_end(),
        style: STYLE,
        script: SCRIPT,
        data: &data,
    };
    Ok(shell.render()?)
}

/// JSON without `<`, so that no text in it can end the script element or begin a comment.
fn escape_script_data(json: &str) -> String {
    json.replace('<', "\\u003c")
}
