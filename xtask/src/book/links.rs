//! Links of a book, in its HTML, where all that made it is over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::citations;

/// A page: where its links lead, and what can be led to.
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// Fails when a link of a page below `html` leads to no file, or to no place of one. Those to other
/// sites are not followed.
pub(super) fn check(html: &Path) -> Result<()> {
    let mut pages = BTreeMap::new();
    read(html, html, &mut pages)?;
    ensure!(pages.len() > 1, "{} has no pages", html.display());
    let (mut count, mut faults) = (0, String::new());
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !is_elsewhere(link)) {
            count += 1;
            if let Some(fault) = fault(html, &pages, path, link) {
                faults += &format!("\n  {}: {link}: {fault}", path.display());
            }
        }
    }
    ensure!(faults.is_empty(), "links that lead nowhere:{faults}");
    println!("{} pages, {count} links lead somewhere", pages.len());
    Ok(())
}

fn read(html: &Path, directory: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            read(html, &path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path.strip_prefix(html)?.to_owned(), page(&text));
        }
    }
    Ok(())
}

fn page(text: &str) -> Page {
    let links = values(text, "href").chain(values(text, "src")).map(plain).collect();
    Page { links, anchors: values(text, "id").map(plain).collect() }
}

/// The values of an attribute.
fn values<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let start = format!(" {name}=\"");
    let parts: Vec<_> = text.split(&start).skip(1).collect();
    parts.into_iter().filter_map(|rest| rest.split('"').next())
}

/// A value without the escapes that addresses have in HTML.
fn plain(value: &str) -> String {
    value.replace("&amp;", "&").replace("&#39;", "'").replace("&quot;", "\"").replace("%20", " ")
}

fn is_elsewhere(link: &str) -> bool {
    let scheme = link.split(['/', '#', '?']).next().unwrap_or_default();
    scheme.contains(':') || link.starts_with("//")
}

/// Why a link of a page leads nowhere.
fn fault(
    html: &Path,
    pages: &BTreeMap<PathBuf, Page>,
    from: &Path,
    link: &str,
) -> Option<&'static str> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = path.split('?').next().unwrap_or_default();
    let target = if path.is_empty() { from.to_owned() } else { citations::resolve(from, path) };
    if !pages.contains_key(&target) && !html.join(&target).exists() {
        return Some("there is no such file");
    }
    let has_anchor =
        anchor.is_empty() || pages.get(&target).is_some_and(|page| page.anchors.contains(anchor));
    (!has_anchor).then_some("the page has no such place")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_seen() {
        let html = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = html.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("a.html", "<a href=\"b/c.html#x\"> <img src=\"d.svg\"> <a href=\"#y\"> <p id=\"y\">");
        put("b/c.html", "<h1 id=\"x\"> <a href=\"../a.html\"> <a href=\"https://x.y/z\">");
        put("d.svg", "");
        check(html.path()).unwrap();
        for (link, fault) in [
            ("<a href=\"b/e.html\">", "no such file"),
            ("<img src=\"e.svg\">", "no such file"),
            ("<a href=\"b/c.html#z\">", "no such place"),
            ("<a href=\"#z\">", "no such place"),
            ("<a href=\"d.svg#z\">", "no such place"),
        ] {
            put("e.html", link);
            let message = check(html.path()).unwrap_err().to_string();
            assert!(message.contains(fault), "{link}: {message}");
        }
    }
}
