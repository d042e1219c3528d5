//! No text in the data can end its element, and none is markup in the shell.
use super::sample::page;
use crate::report::build::safe_text::plain_text;
use crate::report::html::render_html;

const HOSTILE: &str =
    "</script><script>window.taken = 1</script><!-- <img src=x onerror=alert(1)> & \"";

#[test]
fn names_cannot_end_the_data() {
    let mut page = page();
    page.subject.run.command = HOSTILE.to_owned();
    page.subject.structures.rows[0].name = HOSTILE.to_owned();
    page.subject.threads[0].name = HOSTILE.to_owned();
    let html = render_html(&page).expect("a page");
    let (_, rest) = html.split_once("id=\"data\">").expect("the data");
    let (data, _) = rest.split_once("</script>").expect("its end");
    assert!(!data.contains('<'));
    let read: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(read["subject"]["structures"]["rows"][0]["name"], HOSTILE);
    assert_eq!(html.matches("<script").count(), 2, "data and program");
    let title = html
        .split_once("<title>")
        .and_then(|(_, t)| t.split_once("</title>"));
    assert!(!title.expect("a title").0.contains('<'));
}

#[test]
fn nothing_is_fetched() {
    let html = render_html(&page()).expect("a page");
    let head = html.split_once("<style>").expect("a style").0;
    assert!(head.contains("default-src 'none'"), "{head}");
    assert!(head.contains("script-src 'sha256-"), "{head}");
    assert!(!head.contains("unsafe-inline"), "{head}");
    assert_eq!(head.matches("href=").count(), 1, "the empty icon");
}

#[test]
fn texts_are_made_plain() {
    let check = |text: &str, expected: &str| assert_eq!(plain_text(text), expected);
    check("key_buff1", "key_buff1");
    check("tr\u{e4}ge \u{1f422}", "tr\u{e4}ge \u{1f422}");
    check("a\0b\u{1b}[31m\n", "a\u{fffd}b\u{fffd}[31m\u{fffd}");
    check("user\u{202e}gnp.exe", "user\u{fffd}gnp.exe");
    let long = plain_text(&format!("start{}end", "x".repeat(10_000)));
    assert_eq!(long.chars().count(), 241);
    assert!(
        long.starts_with("startxx") && long.ends_with("xxend"),
        "{long}"
    );
}
