//! Places of values along an axis, and the choice of those that are marked there.

use super::number::{number, scientific};

/// An axis as a chart asks for it; its ends follow from the values.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Quantity of the axis, with the unit.
    pub label: String,
    pub log: bool,
    /// The ends, if the values shall not decide them.
    pub range: Option<(f64, f64)>,
    /// Format of its ticks and values, if they are not plain numbers.
    pub write: Option<fn(f64) -> String>,
}

impl Axis {
    /// Linear axis from zero, unless values are negative or a range is set.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), log: false, range: None, write: None }
    }

    /// Values that are not above zero stand at its lower end.
    pub fn log(label: impl Into<String>) -> Self {
        Self { log: true, ..Self::linear(label) }
    }

    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// Sets the format, such as [`time_us`](super::time_us).
    #[must_use]
    pub fn written(self, write: fn(f64) -> String) -> Self {
        Self { write: Some(write), ..self }
    }

    /// Scale for these values between two places of the canvas.
    pub fn scale(&self, values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Scale {
        let values: Vec<f64> = match self.range {
            Some((low, high)) => vec![low, high],
            None if self.log => values.into_iter().collect(),
            None => values.into_iter().chain([0.0]).collect(),
        };
        if self.log { Scale::log(values, from, to) } else { Scale::linear(values, from, to) }
    }

    /// A value of this axis in words.
    pub fn text(&self, value: f64) -> String {
        self.write.unwrap_or(number)(value)
    }

    /// Format of values where powers of ten stand beside one another: all alike.
    pub(super) fn writer(&self, scale: &Scale) -> fn(f64) -> String {
        let wide = self.log && (scale.low < 1e-3 || scale.high > 1e5);
        self.write.unwrap_or(if wide { scientific } else { number })
    }

    /// Ticks in the order of their importance.
    pub fn ticks(&self, scale: &Scale) -> Vec<(f64, String)> {
        let write = self.writer(scale);
        scale.ticks().into_iter().map(|value| (scale.at(value), write(value))).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum AxisKind {
    Linear {
        step: f64,
    },
    Log,
    /// Shares by the logarithm of what they leave: 90, 99 and 99.9 % are equally far apart.
    Rarity,
}

/// Values from `low` to `high` between two places of a canvas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: AxisKind,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Around all values that are numbers, out to whole steps.
    pub fn linear(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        const STEPS: f64 = 5.0;
        // Floating point may leave a value that is on a step just beside it.
        const ALMOST: f64 = 1e-6;
        let (low, high) = ends(values.into_iter().filter(|value| value.is_finite())).unwrap_or((0.0, 1.0));
        let high = if low < high { high } else { low + 1.0 };
        let step = above((high - low) / STEPS);
        let low = (low / step + ALMOST).floor() * step;
        let high = (high / step - ALMOST).ceil() * step;
        Self { kind: AxisKind::Linear { step }, low, high, from, to }
    }

    /// Around all values that have a logarithm, out to 1, 2 or 5 of a decade.
    pub fn log(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) =
            ends(values.into_iter().filter(|value| value.is_finite() && *value > 0.0)).unwrap_or((1.0, 10.0));
        let (low, high) = (below(low), above(high));
        let high = if low < high { high } else { low * 10.0 };
        Self { kind: AxisKind::Log, low, high, from, to }
    }

    /// Shares from `low` to one that leaves `rarest`; rarer values lie beyond it.
    pub(crate) fn rarity(low: f64, rarest: f64, from: f64, to: f64) -> Self {
        let low = if (0.0..1.0).contains(&low) { low } else { 0.0 };
        let most = (1.0 - low) / 10.0;
        let rarest = if rarest > 0.0 { rarest.min(most) } else { most };
        Self { kind: AxisKind::Rarity, low, high: 1.0 - rarest, from, to }
    }

    /// Place of a value on the axis; values beyond an end are drawn at that end.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = (self.position(self.low), self.position(self.high));
        let share = (self.position(value) - low) / (high - low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn position(&self, value: f64) -> f64 {
        match self.kind {
            AxisKind::Linear { .. } => value,
            AxisKind::Log if value <= 0.0 => f64::NEG_INFINITY,
            AxisKind::Log => value.log10(),
            AxisKind::Rarity if value >= 1.0 => f64::INFINITY,
            AxisKind::Rarity => -(1.0 - value).log10(),
        }
    }

    /// Ticks in the order of their importance, in case there is no room for all.
    pub fn ticks(&self) -> Vec<f64> {
        match self.kind {
            AxisKind::Linear { step } => (0..=((self.high - self.low) / step).round() as u32)
                .map(|count| self.low + f64::from(count) * step)
                .collect(),
            AxisKind::Log => self.log_ticks(),
            AxisKind::Rarity => {
                let decades = (1..=12).map(|decade| 1.0 - 10f64.powi(-decade));
                std::iter::once(self.low).chain(decades.filter(|share| self.holds(*share))).collect()
            }
        }
    }

    /// Ticks at decades and at the ends; finer ones if these are too few.
    fn log_ticks(&self) -> Vec<f64> {
        let exponents = || (self.low.log10() - 1.0).floor() as i32..=(self.high.log10() + 1.0).ceil() as i32;
        let decades: Vec<f64> = exponents().map(|e| 10f64.powi(e)).filter(|value| self.holds(*value)).collect();
        if decades.len() < 2 {
            let fine = exponents().flat_map(|e| [1.0, 2.0, 5.0].map(|of| of * 10f64.powi(e)));
            return fine.filter(|value| self.holds(*value)).collect();
        }
        decades.into_iter().chain([self.low, self.high]).collect()
    }

    fn holds(&self, value: f64) -> bool {
        (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(&value)
    }

    /// Ends of the axis on the canvas.
    pub fn places(&self) -> (f64, f64) {
        (self.from, self.to)
    }
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let none = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.fold(none, |(low, high), value| (low.min(value), high.max(value)));
    (low <= high).then_some((low, high))
}

/// The greatest of 1, 2 and 5 times a power of ten that is not above a value.
fn below(value: f64) -> f64 {
    let decade = 10f64.powf((value.log10() + 1e-9).floor());
    let fits = |of: &f64| of * decade <= value * (1.0 + 1e-9);
    [5.0, 2.0, 1.0].into_iter().find(fits).unwrap_or(1.0) * decade
}

/// The least of 1, 2 and 5 times a power of ten that is not below a value.
fn above(value: f64) -> f64 {
    let decade = 10f64.powf((value.log10() + 1e-9).floor());
    let fits = |of: &f64| of * decade >= value * (1.0 - 1e-9);
    [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearly(found: Vec<f64>, expected: &[f64]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= b.abs() * 1e-9 + 1e-12), "{found:?}");
    }

    #[test]
    fn a_linear_scale_ends_at_whole_steps() {
        nearly(Scale::linear([0.0, 23.4], 0.0, 1.0).ticks(), &[0.0, 5.0, 10.0, 15.0, 20.0, 25.0]);
        nearly(Scale::linear([0.99, 1.0], 0.0, 1.0).ticks(), &[0.99, 0.992, 0.994, 0.996, 0.998, 1.0]);
        nearly(Scale::linear([-3.0, 3.0], 0.0, 1.0).ticks(), &[-4.0, -2.0, 0.0, 2.0, 4.0]);
    }

    #[test]
    fn a_logarithmic_scale_marks_its_decades_first_and_then_its_ends() {
        nearly(Scale::log([22.0, 4_100.0], 0.0, 1.0).ticks(), &[100.0, 1_000.0, 20.0, 5_000.0]);
        nearly(Scale::log([22.0, 70.0], 0.0, 1.0).ticks(), &[20.0, 50.0, 100.0]);
        let scale = Scale::log([10.0, 1e6, 0.0, f64::NAN], 0.0, 100.0);
        assert_eq!([10.0, 1e6, 1e3].map(|value| scale.at(value).round()), [0.0, 100.0, 40.0]);
        assert_eq!([0.0, -1.0, f64::INFINITY].map(|value| scale.at(value)), [0.0, 0.0, 100.0]);
    }

    #[test]
    fn rare_shares_are_equally_far_apart() {
        let scale = Scale::rarity(0.9, 1e-5, 0.0, 4.0);
        nearly(scale.ticks(), &[0.9, 0.9, 0.99, 0.999, 0.9999, 0.99999]);
        nearly([0.9, 0.999, 1.0].map(|share| scale.at(share)).to_vec(), &[0.0, 2.0, 4.0]);
    }

    #[test]
    fn a_scale_of_one_value_or_of_none_still_has_two_ends() {
        for values in [vec![10.0], vec![], vec![0.0], vec![f64::NAN], vec![1e-300], vec![-1e300, 1e300]] {
            for scale in [Scale::log(values.clone(), 0.0, 100.0), Scale::linear(values.clone(), 0.0, 100.0)] {
                assert!(scale.ticks().len() >= 2, "{values:?} {scale:?}");
                assert!(scale.at(10.0).is_finite(), "{values:?} {scale:?}");
            }
        }
    }

    #[test]
    fn powers_of_ten_are_written_alike_on_one_axis() {
        let axis = Axis::log("loss");
        let texts = |values: [f64; 2]| {
            let ticks = axis.ticks(&axis.scale(values, 0.0, 1.0));
            ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(texts([1e-4, 1e-2])[..3], ["10⁻⁴", "10⁻³", "10⁻²"]);
        assert_eq!(texts([1e-2, 1.0])[..3], ["0.01", "0.1", "1"]);
    }
}
