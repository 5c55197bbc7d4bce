//! Counters of frames and messages that a host has sent, received and missed.

units::counters! {
    /// Counters since the start.
    HostCounters:
    /// RSVs sent, repeated ones included.
    rsvs,
    /// RSVs that were not answered in time.
    unanswered,
    /// GRTs that were used.
    grants,
    /// Messages about bursts that are over, or of another run.
    stale,
    /// RSVs that the switch refused.
    refused,
    /// Frames sent as part of a burst.
    sent,
    /// Frames among these that were sent without waiting for a grant.
    unsolicited,
    /// Unsolicited frames sent again: those that the switch cut, or the paper's resent bursts.
    resent,
    /// Frames that the switch cut and of which no copy was kept.
    lost,
    /// Frames sent without a mark.
    unmarked,
    /// Frames received and delivered.
    delivered,
    /// Frames received a second time and not delivered.
    duplicates,
    /// Announced bursts that did not come in full, reported to the switch.
    resets,
    /// Runs of the switch after the first.
    switch_restarts,
}
