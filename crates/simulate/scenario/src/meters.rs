//! `[radar]`: LossRadar's meters at every interface.

use settings::{ReadResult, SettingsReader};
use sim::net::metering::{MeteringConfig, Placement};
use sim::topology::{NodeId, Topology};
use units::Span;

/// Shorter than this, more than two batches are under way at once.
const SHORTEST_BATCH: Span = Span::from_ms(1);
const LONGEST_BATCH: Span = Span::from_ms(10_000);

/// The bytes that a cell takes here, for both digests that a meter keeps.
const CELL: usize = 2 * 96;
const MOST_MEMORY: usize = 4 << 30;

/// `None` without the table.
pub(crate) fn read(
    table: Option<&SettingsReader<'_>>,
    topology: &Topology,
    until: Span,
) -> ReadResult<Option<MeteringConfig>> {
    let Some(table) = table else { return Ok(None) };
    let usual = MeteringConfig::default();
    let batch = table.parsed::<Span>("batch")?.unwrap_or(usual.batch);
    if !(SHORTEST_BATCH..=LONGEST_BATCH).contains(&batch) {
        return Err(table.wrong("batch", format_args!("{batch}: expected {SHORTEST_BATCH} to {LONGEST_BATCH}")));
    }
    let timeout = table.span("timeout", Span::ZERO..=LONGEST_BATCH)?.unwrap_or(batch / 2);
    if timeout > batch {
        let problem = format!("{timeout}: expected at most a batch, {batch}: a meter has two of them open");
        return Err(table.wrong("timeout", problem));
    }
    if batch + timeout > until {
        let problem = format!("{batch}, and {timeout} until it is looked at: expected an end before that of the run");
        return Err(table.wrong("batch", problem));
    }
    let black_boxes = black_boxes(table, topology)?;
    let meters = Placement::of(topology, &black_boxes).meters().max(1);
    let most = (MOST_MEMORY / CELL / meters).max(3) as u32;
    let cells = table.small("cells", 3..=most)?.map_or(usual.cells, |cells| cells as usize);
    let clock_error = table.span("clock_error", Span::ZERO..=LONGEST_BATCH)?;
    if clock_error.is_some_and(|error| error * 4 > batch) {
        return Err(table.wrong("clock_error", format_args!("expected at most a quarter of a batch, {}", batch / 4)));
    }
    if clock_error.is_some() && !black_boxes.is_empty() {
        return Err(
            table.wrong("clock_error", "not with black_boxes: without a tag nobody knows which meter a packet passed")
        );
    }
    Ok(Some(MeteringConfig { batch, timeout, cells, clock_error, black_boxes, keep_truth: false }))
}

fn black_boxes(table: &SettingsReader<'_>, topology: &Topology) -> ReadResult<Vec<NodeId>> {
    let names = table.several("black_boxes")?.unwrap_or_default();
    let switch = |name: String| {
        let node = topology.node(&name).map_err(|error| table.wrong("black_boxes", error))?;
        if topology.is_host(node) {
            return Err(table.wrong("black_boxes", format_args!("'{name}' is a host: expected switches")));
        }
        Ok(node)
    };
    names.into_iter().map(switch).collect()
}
