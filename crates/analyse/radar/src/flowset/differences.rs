//! Counters that are a little different from those of another switch: which, and by how much.
//!
//! Most flows have as many packets here as at the hop before: what a guess does not explain comes from the few that have not.
//! A flow with a cell in which nothing is unexplained is most likely as guessed; one that is the only one of a cell that could
//! be otherwise must be what explains it. That is exact integer arithmetic and one pass over the cells, where solving all
//! equations anew takes hundreds. Two differences that cancel out in a cell can mislead it, so flows are taken to be as
//! guessed only if most of their cells say so, then those of which fewer do, and in the end every cell is checked. Counters are
//! modulo 2³², and so are differences.

/// Cells and the flows in them.
#[derive(Debug)]
pub(super) struct Incidence {
    /// Cells of each flow.
    pub rows: usize,
    /// Cells of each flow: the first `rows` of each entry.
    pub places: Vec<[u32; 4]>,
    /// Flows of each cell, and where its first is.
    members: Vec<u32>,
    starts: Vec<u32>,
}

impl Incidence {
    pub(crate) fn new(rows: usize, cells: usize, places: Vec<[u32; 4]>) -> Self {
        let mut starts = vec![0_u32; cells + 1];
        places.iter().flat_map(|places| &places[..rows]).for_each(|at| starts[*at as usize + 1] += 1);
        for at in 0..cells {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut members = vec![0; rows * places.len()];
        for (flow, places) in (0..).zip(&places) {
            for at in &places[..rows] {
                let next = &mut next[*at as usize];
                members[*next as usize] = flow;
                *next += 1;
            }
        }
        Self { rows, places, members, starts }
    }

    pub(crate) fn cells(&self) -> usize {
        self.starts.len() - 1
    }

    fn members(&self, cell: u32) -> &[u32] {
        let cell = cell as usize;
        &self.members[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }

    pub(crate) fn places(&self, flow: u32) -> &[u32] {
        &self.places[flow as usize][..self.rows]
    }
}

/// State of the search.
struct DifferenceSearch<'a> {
    incidence: &'a Incidence,
    difference: Vec<i32>,
    settled: Vec<bool>,
    /// Unexplained difference of each cell, and the number of its flows that are not settled.
    residual: Vec<i32>,
    open: Vec<u32>,
    /// Number of each flow's cells in which nothing is unexplained.
    quiet: Vec<u8>,
    /// Cells with one flow that is not settled.
    last: Vec<u32>,
}

/// Difference of each flow from a guess that leaves `residual` unexplained in the cells, as far as it can be found.
pub(super) fn find(incidence: &Incidence, residual: &[i32]) -> Vec<i32> {
    let mut search = DifferenceSearch::new(incidence, residual);
    for least in (1..incidence.rows as u8).rev() {
        search.settle_lasts();
        for flow in 0..incidence.places.len() as u32 {
            if !search.settled[flow as usize] && search.quiet[flow as usize] >= least {
                search.settle(flow, 0);
                search.settle_lasts();
            }
        }
    }
    search.difference
}

/// Takes differences out of what is unexplained.
pub(super) fn explain(incidence: &Incidence, residual: &mut [i32], difference: &[i32]) {
    for (flow, difference) in (0..).zip(difference).filter(|(_, difference)| **difference != 0) {
        for at in incidence.places(flow) {
            residual[*at as usize] = residual[*at as usize].wrapping_sub(*difference);
        }
    }
}

impl<'a> DifferenceSearch<'a> {
    fn new(incidence: &'a Incidence, residual: &[i32]) -> Self {
        let open: Vec<u32> = incidence.starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let last = (0..).zip(&open).filter(|(_, open)| **open == 1).map(|(cell, _)| cell).collect();
        let quiet =
            |places: &[u32; 4]| places[..incidence.rows].iter().filter(|at| residual[**at as usize] == 0).count() as u8;
        Self {
            incidence,
            difference: vec![0; incidence.places.len()],
            settled: vec![false; incidence.places.len()],
            residual: residual.to_vec(),
            open,
            quiet: incidence.places.iter().map(quiet).collect(),
            last,
        }
    }

    fn settle_lasts(&mut self) {
        while let Some(cell) = self.last.pop() {
            let flow = self.incidence.members(cell).iter().find(|flow| !self.settled[**flow as usize]);
            if let Some(flow) = flow.copied() {
                self.settle(flow, self.residual[cell as usize]);
            }
        }
    }

    fn settle(&mut self, flow: u32, difference: i32) {
        self.settled[flow as usize] = true;
        self.difference[flow as usize] = difference;
        for cell in self.incidence.places(flow) {
            let at = *cell as usize;
            self.open[at] -= 1;
            if self.open[at] == 1 {
                self.last.push(*cell);
            }
            if difference == 0 {
                continue;
            }
            let was_quiet = self.residual[at] == 0;
            self.residual[at] = self.residual[at].wrapping_sub(difference);
            let is_quiet = self.residual[at] == 0;
            if was_quiet != is_quiet {
                for member in self.incidence.members(*cell) {
                    let quiet = &mut self.quiet[*member as usize];
                    *quiet = if is_quiet { *quiet + 1 } else { *quiet - 1 };
                }
            }
        }
    }
}
