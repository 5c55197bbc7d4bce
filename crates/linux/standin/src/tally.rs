//! Counters of a stand-in's frames, beside those of the protocol that runs on it. Those of seals and stamps count for a link only.

units::counters! { Tally:
    /// Frames on the wire, as they were put there and came off it.
    wire_tx_frames,
    wire_tx_bytes,
    wire_rx_frames,
    wire_rx_bytes,
    /// Frames that the wire did not take because it is down.
    wire_refused,
    /// Frames of the host's, after segmentation and before it.
    host_rx_frames,
    host_rx_bytes,
    /// Frames handed to the host, before they were joined.
    host_tx_frames,
    host_tx_bytes,
    /// Frames of the host's that the queue dropped because it was too long for too long, or full.
    queue_dropped,
    /// Frames of the host's that came before the peer answered, where those are to be discarded, or could not be sealed.
    gate_dropped,
    /// Frames that the host had no room for.
    host_refused,
    /// Super-frames of the host's that contradict themselves.
    host_malformed,
    /// Frames of the host's that found its ring full.
    host_overflow,
    /// Frames off the wire that found the ring full: not corruption.
    ring_overflow,
    /// Frames for which the pool had no slot.
    no_buffer,
    /// Frames that are no frames of ours though their type says so.
    rx_malformed,
    /// Frames of ours that came back to us.
    rx_looped,
    /// Frames from an address that is not the peer's.
    rx_stranger,
    /// Frames whose check sum does not fit.
    rx_corrupted,
    /// Frames without any tag, where a key is used.
    rx_unsealed,
    /// Frames without a valid tag.
    rx_forged,
    /// Frames that had been here before.
    rx_replayed,
    /// Frames that could not be opened while the two ends had yet to agree on a session.
    rx_early,
    /// Greetings between keyed seals.
    rx_greetings,
    /// Frames whose number was in their addresses, and the messages and super-frames in which the kernel had them.
    tx_stamped,
    tx_stamped_runs,
    rx_stamped,
    rx_stamped_runs,
    /// Stamped frames of this session whose segments do not fit the stamp.
    rx_stamp_bad,
    /// Stamped frames of this session while our own probes were not answered, and probes of another session.
    rx_stamp_dropped,
    /// Stamped frames that are not of this session: late ones, those of others on the same wire, forged ones.
    rx_stamp_stranger,
    /// Times that stamps were used no longer because probes did not arrive by every path, or most stamped frames were lost.
    stamp_relapses,
}
