//! Counters of an endpoint. Names are UEC LLR's where they mean the same.

units::counters! {
    /// Frames and losses of one end.
    Counters:
    /// Protected frames sent for the first time.
    tx_ok,
    /// Frames sent without protection.
    tx_plain,
    /// Frames sent again, each copy counted.
    tx_replay,
    /// Acknowledgements sent.
    tx_ack,
    /// Loss notices sent, each copy counted.
    tx_nack,
    /// Dummies sent.
    tx_dummy,
    /// Frames that the peer reported missing, each once.
    tx_missing,
    /// Frames longer than the agreed maximum, dropped before the wire.
    tx_oversize,
    /// Protected frames received, copies included.
    rx_ok,
    /// Frames received without protection.
    rx_plain,
    /// Frames that made no sense: not ours, or impossible in the state we are in.
    rx_bad,
    /// Frames received in sequence.
    rx_expected_seq_good,
    /// Frames found missing.
    rx_missing_seq,
    /// Frames received before.
    rx_duplicate_seq,
    /// Retransmitted copies received.
    rx_replay,
    /// Acknowledgements received.
    rx_ack,
    /// Loss notices received.
    rx_nack,
    /// Dummies received.
    rx_dummy,
    /// Frames of an epoch that is over.
    rx_old_epoch,
    /// Missing frames that arrived after all.
    recovered,
    /// Missing frames not waited for any longer.
    given_up,
    /// Frames that found the reorder buffer full.
    rx_overflow,
    /// Frames not acknowledged when a peer restarted or fell silent.
    flushed,
    /// Times that this end asked its peer to hold back.
    pauses,
}
