//! Rules that hold for every page and drawing.

/// Every element that is opened is closed, in the right order.
pub fn assert_well_formed(page: &str) {
    const VOID: [&str; 2] = ["meta", "wbr"];
    let mut open = Vec::new();
    for part in page.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends before the next one begins");
        assert!(!text.contains('>'), "a stray bracket after {tag}");
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap_or_default().trim_end_matches('/');
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closed by </{name}>");
        } else if !tag.starts_with('!') && !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes in <{tag}>");
    }
    assert!(open.is_empty(), "still open: {open:?}");
}

/// Checks that all numbers of the page are finite.
pub fn assert_finite(page: &str) {
    for word in page.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        assert!(!["nan", "inf", "infinity"].contains(&word.to_lowercase().as_str()), "{word}");
    }
}

/// Value of an attribute of a tag.
pub fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// Every mark and every text begins on the canvas of the drawing it is in.
pub fn assert_on_canvas(page: &str) {
    for drawing in page.split("<svg ").skip(1) {
        let drawing = format!(" {}", drawing.split("</svg>").next().unwrap_or_default());
        let size: Vec<f64> =
            attribute(&drawing, "viewBox").unwrap().split(' ').map(|side| side.parse().unwrap()).collect();
        let within = |text: &str, most: f64| {
            let value: f64 = text.parse().unwrap();
            assert!((0.0..=most).contains(&value), "{value} of {most} in {drawing}");
        };
        for tag in drawing.split('<').skip(1) {
            for (names, most) in [(["x", "cx"], size[2]), (["y", "cy"], size[3])] {
                names.into_iter().filter_map(|name| attribute(tag, name)).for_each(|value| within(value, most));
            }
            for point in attribute(tag, "points").unwrap_or_default().split_whitespace() {
                let (x, y) = point.split_once(',').unwrap();
                within(x, size[2]);
                within(y, size[3]);
            }
        }
    }
}
