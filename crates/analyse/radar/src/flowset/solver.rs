//! Least squares for sparse systems of zeros and ones: conjugate gradients on the normal equations, which is what LSQR
//! computes in exact arithmetic.

/// A matrix, by what it does to vectors.
pub trait Matrix {
    /// Number of equations, and number of unknowns.
    fn size(&self) -> (usize, usize);

    /// Adds the matrix times `x` to `sums`.
    fn apply(&self, x: &[f64], sums: &mut [f64]);

    /// Adds the transposed matrix times `y` to `sums`.
    fn transpose(&self, y: &[f64], sums: &mut [f64]);
}

/// Descent to the `x` that explains the equations best.
#[derive(Debug)]
pub struct Descent {
    pub x: Vec<f64>,
    /// Unexplained part of the sums.
    residual: Vec<f64>,
    direction: Vec<f64>,
    gradient: Vec<f64>,
    /// The gradient's square.
    slope: f64,
    sums: Vec<f64>,
}

impl Descent {
    /// Starts from a first guess `x`, with the part of the sums that it does not explain.
    pub fn new(matrix: &impl Matrix, x: Vec<f64>, residual: Vec<f64>) -> Self {
        let (equations, unknowns) = matrix.size();
        let mut gradient = vec![0.0; unknowns];
        matrix.transpose(&residual, &mut gradient);
        let slope = square(&gradient);
        Self { x, residual, direction: gradient.clone(), gradient, slope, sums: vec![0.0; equations] }
    }

    /// The square of the unexplained part.
    pub fn unexplained(&self) -> f64 {
        square(&self.residual)
    }

    /// Makes one step. Returns the distance by which it moved the unknown that it moved most: zero at the end of the way.
    pub fn step(&mut self, matrix: &impl Matrix) -> f64 {
        self.sums.fill(0.0);
        matrix.apply(&self.direction, &mut self.sums);
        let length = self.slope / square(&self.sums);
        if !length.is_finite() {
            return 0.0;
        }
        self.residual.iter_mut().zip(&self.sums).for_each(|(residual, sum)| *residual -= length * sum);
        let mut furthest = 0.0_f64;
        for (x, direction) in self.x.iter_mut().zip(&self.direction) {
            *x += length * direction;
            furthest = furthest.max((length * direction).abs());
        }
        self.gradient.fill(0.0);
        matrix.transpose(&self.residual, &mut self.gradient);
        let slope = square(&self.gradient);
        let turn = slope / self.slope;
        self.slope = slope;
        self.direction
            .iter_mut()
            .zip(&self.gradient)
            .for_each(|(direction, down)| *direction = down + turn * *direction);
        furthest
    }
}

fn square(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum()
}
