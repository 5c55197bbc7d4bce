//! Frame of every page: one file that needs nothing else, for a screen of any width and for paper.

use crate::svg::escape;

const CSS: &str = include_str!("page.css");

/// The parts of a document. All but the title are HTML already.
#[derive(Clone, Copy, Debug)]
pub struct PageFrame<'a> {
    pub title: &'a str,
    /// Rules beyond those that all pages share.
    pub css: &'a str,
    /// Stands below the title.
    pub header: &'a str,
    pub main: &'a str,
    pub footer: &'a str,
}

impl PageFrame<'_> {
    pub fn html(&self) -> String {
        let Self { title, css, header, main, footer } = self;
        format!(
            r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="hitless {version}">
<title>{title}</title>
<style>
{CSS}{css}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{header}</header>
<main>
{main}</main>
<footer>
{footer}</footer>
</body>
</html>
"#,
            version = env!("CARGO_PKG_VERSION"),
            title = escape(title),
        )
    }
}

/// A command line to type. An option stays with its value where lines break.
pub fn command(line: &str) -> String {
    let parts = escape(line).replace(" --", "</span> <span>--");
    format!("<pre><code><span>{parts}</span></code></pre>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stay_with_their_values() {
        let html = command("hitless reproduce a --seed 1 --scale full");
        assert!(
            html.contains("<span>hitless reproduce a</span> <span>--seed 1</span> <span>--scale full</span>"),
            "{html}"
        );
    }
}
