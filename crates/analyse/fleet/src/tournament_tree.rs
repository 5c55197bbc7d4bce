//! The least of many values, kept up to date as single ones change.

/// A tournament: every inner node has the lesser of the two below it.
#[derive(Clone, Debug)]
pub(crate) struct TournamentTree<T> {
    /// The root at 1, the values in the second half.
    nodes: Vec<T>,
}

impl<T: Copy + PartialOrd> TournamentTree<T> {
    /// `values` must not be empty; `most` is at least as great as any value that will ever be set.
    pub(crate) fn new(values: &[T], most: T) -> Self {
        let width = values.len().next_power_of_two();
        let mut nodes = vec![most; 2 * width];
        nodes[width..width + values.len()].copy_from_slice(values);
        for i in (1..width).rev() {
            nodes[i] = lesser(nodes[2 * i], nodes[2 * i + 1]);
        }
        Self { nodes }
    }

    pub(crate) fn get(&self) -> T {
        self.nodes[1]
    }

    pub(crate) fn set(&mut self, index: usize, value: T) {
        let mut i = self.nodes.len() / 2 + index;
        self.nodes[i] = value;
        while i > 1 {
            i /= 2;
            self.nodes[i] = lesser(self.nodes[2 * i], self.nodes[2 * i + 1]);
        }
    }
}

fn lesser<T: PartialOrd>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_follows_every_change() {
        let mut least = TournamentTree::new(&[5, 3, 9], u64::MAX);
        assert_eq!(least.get(), 3);
        least.set(1, 7);
        assert_eq!(least.get(), 5);
        least.set(2, 0);
        assert_eq!(least.get(), 0);
        least.set(2, 100);
        least.set(0, 100);
        assert_eq!(least.get(), 7);
    }
}
