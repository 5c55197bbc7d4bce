//! One value by another, a dot for each of a few things with its name beside it: what a scheme gains by what it costs.

use super::plot::{Area, LINE, WIDTH, legible, shortened, width_of};
use super::style::LegendKey;
use super::{Axis, Data, Drawing, NOTHING, Palette, Style};
use crate::svg::{Anchor, Svg};

#[derive(Clone, Debug)]
pub struct PointsChart {
    pub title: String,
    pub caption: String,
    pub x: Axis,
    pub y: Axis,
    pub dots: Vec<Dot>,
}

/// A dot that has no number on one of the axes is listed in the table only.
#[derive(Clone, Debug)]
pub struct Dot {
    pub name: String,
    pub x: Option<f64>,
    pub y: Option<f64>,
}

/// Area of the canvas that a dot or a name covers.
#[derive(Clone, Copy, Debug)]
struct Cover {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// A label and its place, where it covers no other.
#[derive(Clone, Debug)]
struct DotLabel {
    text: String,
    anchor: Anchor,
    /// Middle of the label, from top to bottom.
    at: (f64, f64),
    cover: Cover,
    /// Start of a line to its dot, if the dot is so far away that one would look for it.
    leader: Option<(f64, f64)>,
}

const TOP: f64 = LINE + 7.0;
const BOTTOM: f64 = TOP + 220.0;
/// Half of a mark, and a little air.
const REACH: f64 = 6.0;
/// Keeps words apart.
const AIR: f64 = 3.0;

impl Dot {
    fn place(&self) -> Option<(f64, f64)> {
        self.x.zip(self.y).filter(|(x, y)| x.is_finite() && y.is_finite())
    }
}

impl Cover {
    fn around((x, y): (f64, f64)) -> Self {
        Self { left: x - REACH, right: x + REACH, top: y - REACH, bottom: y + REACH }
    }

    fn touches(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn within(&self, area: &Area) -> bool {
        self.left >= area.left && self.right <= WIDTH && self.top >= area.top - LINE / 2.0 && self.bottom <= area.bottom
    }
}

impl DotLabel {
    /// Places for a label: to the right of its dot, to the left, above or below it; then farther up and down.
    fn choices(text: &str, dot: (f64, f64)) -> impl Iterator<Item = Self> {
        const BESIDE: f64 = REACH + AIR + 0.5;
        const ASIDE: f64 = 4.0 * REACH;
        const FARTHEST: i32 = 8;
        const SIDES: [(Anchor, f64); 5] = [
            (Anchor::Start, BESIDE),
            (Anchor::End, -BESIDE),
            (Anchor::Middle, 0.0),
            (Anchor::Start, ASIDE),
            (Anchor::End, -ASIDE),
        ];
        let levels = std::iter::once(0).chain((1..=FARTHEST).flat_map(|level| [-level, level]));
        levels.flat_map(move |level| {
            let down = f64::from(level) * (LINE - 1.0);
            SIDES.map(|(anchor, aside)| Self::new(text, anchor, dot, (aside, down)))
        })
    }

    fn new(text: &str, anchor: Anchor, dot: (f64, f64), (aside, down): (f64, f64)) -> Self {
        const NEAR: f64 = REACH + AIR + 1.0;
        let at = (dot.0 + aside, dot.1 + down);
        let width = width_of(text);
        let left = match anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - width / 2.0,
            Anchor::End => at.0 - width,
        };
        let half = (LINE - 2.0) / 2.0;
        let cover = Cover { left: left - AIR, right: left + width + AIR, top: at.1 - half, bottom: at.1 + half };
        let nearest = (dot.0.clamp(left, left + width), dot.1.clamp(cover.top, cover.bottom));
        let leader = ((nearest.0 - dot.0).hypot(nearest.1 - dot.1) > NEAR).then_some(nearest);
        Self { text: text.to_owned(), anchor, at, cover, leader }
    }
}

impl PointsChart {
    fn placed(&self) -> impl Iterator<Item = (&Dot, (f64, f64))> {
        self.dots.iter().filter_map(|dot| Some((dot, dot.place()?)))
    }

    pub(super) fn draw(&self, id: &str, palette: &mut Palette) -> Option<Drawing> {
        self.placed().next()?;
        let y = self.y.scale(self.placed().flat_map(|(_, (_, y))| around(y, self.y.log)), BOTTOM, TOP);
        let rows = legible(self.y.ticks(&y), |_| LINE, 0.0);
        let area = Area::beside(&rows, TOP, BOTTOM);
        let x = self.x.scale(self.placed().map(|(_, (x, _))| x), area.left, area.right);
        let mut svg = Svg::new(id, WIDTH as u32, (BOTTOM + Area::FOOT) as u32, &self.title, &self.description());
        area.rule(&mut svg, (&self.x.label, &self.y.label), &self.x.ticks(&x), &rows);

        let styles = palette.styles(self.placed().map(|(dot, _)| dot.name.as_str()));
        let places: Vec<(f64, f64)> = self.placed().map(|(_, (across, up))| (x.at(across), y.at(up))).collect();
        let names: Vec<&str> = self.placed().map(|(dot, _)| dot.name.as_str()).collect();
        let labels = labels(&names, &places, &area);
        for (place, label) in places.iter().zip(&labels) {
            label.iter().filter_map(|label| label.leader).for_each(|end| svg.line("leader", *place, end));
        }
        for (place, style) in places.iter().zip(&styles) {
            style.mark(&mut svg, *place, false);
        }
        for label in labels.iter().flatten() {
            svg.text("name halo mid", label.anchor, label.at, &label.text);
        }
        Some(Drawing { keys: self.keys(&names, &styles, &labels), svg, data: Some(self.data()) })
    }

    /// Legend of the names that found no room beside their dots, and of names without a dot.
    fn keys(&self, names: &[&str], styles: &[Style], labels: &[Option<DotLabel>]) -> Vec<(LegendKey, String)> {
        let crowded = names.iter().zip(styles).zip(labels).filter(|(_, label)| label.is_none());
        let crowded = crowded.map(|((name, style), _)| (LegendKey::Mark(*style), (*name).to_owned()));
        let missing = self.dots.iter().filter(|dot| dot.place().is_none());
        crowded.chain(missing.map(|dot| (LegendKey::None, format!("{} (no data)", dot.name)))).collect()
    }

    fn description(&self) -> String {
        let told = |dot: &Dot| match dot.place() {
            Some((x, y)) => format!("{}: {} at {}.", dot.name, self.y.text(y), self.x.text(x)),
            None => format!("{}: no data.", dot.name),
        };
        let dots: Vec<String> = self.dots.iter().map(told).collect();
        format!("{} by {}. {}", self.y.label, self.x.label, dots.join(" "))
    }

    fn data(&self) -> Data {
        let text = |axis: &Axis, value: Option<f64>| value.map_or(NOTHING.to_owned(), |value| axis.text(value));
        let row = |dot: &Dot| (vec![dot.name.clone()], vec![text(&self.x, dot.x), text(&self.y, dot.y)]);
        Data {
            caption: format!("{} by {}", self.y.label, self.x.label),
            names: vec![String::new()],
            values: vec![self.x.label.clone(), self.y.label.clone()],
            rows: self.dots.iter().map(row).collect(),
        }
    }
}

/// A value with what keeps its dot off the ends of the axis, where names have no room.
fn around(value: f64, log: bool) -> [f64; 2] {
    const ROOM: f64 = 2.0;
    if log { [value / ROOM, value * ROOM] } else { [value; 2] }
}

/// A place for each name where it touches neither dots nor other names; none if there is no such place. Those in the
/// thickest crowd choose first.
fn labels(names: &[&str], places: &[(f64, f64)], area: &Area) -> Vec<Option<DotLabel>> {
    let dots: Vec<Cover> = places.iter().copied().map(Cover::around).collect();
    let near = |at: usize| {
        let (x, y) = places[at];
        places.iter().filter(|(u, v)| (u - x).abs() < WIDTH / 3.0 && (v - y).abs() < 2.0 * LINE).count()
    };
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(near(*at)), *at));
    let mut labels: Vec<Option<DotLabel>> = vec![None; names.len()];
    for at in order {
        let free = |label: &DotLabel| {
            let others = labels.iter().flatten().map(|other| &other.cover);
            label.cover.within(area) && dots.iter().chain(others).all(|cover| !label.cover.touches(cover))
        };
        labels[at] = DotLabel::choices(&shortened(names[at], WIDTH / 2.0), places[at]).find(free);
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { left: 40.0, right: Area::RIGHT, top: TOP, bottom: BOTTOM };

    #[test]
    fn names_touch_neither_dots_nor_one_another() {
        let names = ["None", "NAK", "Twice", "Dummy", "All", "All Optimized", "NoLoss"];
        let crowd: Vec<(f64, f64)> =
            (0..names.len()).map(|at| (120.0 + 9.0 * at as f64, 100.0 + 4.0 * at as f64)).collect();
        let labels = labels(&names, &crowd, &AREA);
        let dots: Vec<Cover> = crowd.iter().copied().map(Cover::around).collect();
        let placed: Vec<&DotLabel> = labels.iter().flatten().collect();
        assert_eq!(placed.len(), names.len(), "{placed:?}");
        for (at, label) in placed.iter().enumerate() {
            assert!(label.cover.within(&AREA), "{label:?}");
            assert!(dots.iter().all(|dot| !dot.touches(&label.cover)), "{label:?}");
            assert!(placed[..at].iter().all(|other| !other.cover.touches(&label.cover)), "{label:?}");
        }
    }

    #[test]
    fn a_name_alone_stands_to_the_right_of_its_dot_or_to_the_left_at_the_edge() {
        let at = |x| labels(&["All"], &[(x, 100.0)], &AREA)[0].clone().unwrap();
        assert_eq!([at(100.0), at(345.0)].map(|label| label.anchor), [Anchor::Start, Anchor::End]);
        assert_eq!(at(100.0).leader, None);
    }

    #[test]
    fn a_name_without_room_goes_to_the_legend() {
        let dot = |x: f64| Dot { name: format!("{x}, with a long name that goes on"), x: Some(x), y: Some(1.0) };
        let chart = PointsChart {
            title: "t".into(),
            caption: String::new(),
            x: Axis::linear("cost, %"),
            y: Axis::log("FCT"),
            dots: (0..60).map(|at| dot(f64::from(at) / 10.0)).collect(),
        };
        let drawing = chart.draw("c", &mut Palette::default()).unwrap();
        let svg = drawing.svg.to_string();
        let named = svg.matches("class=\"name halo mid\"").count();
        assert_eq!(named + drawing.keys.len(), 60);
        assert!(named > 0 && !drawing.keys.is_empty(), "{named}");
    }
}
