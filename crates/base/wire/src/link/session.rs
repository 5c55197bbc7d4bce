//! Messages of the link's life cycle: they agree on an epoch and on parameters, or say why not.

/// Question or answer of an end. See `guard::session` for the order in which they are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum SessionKind {
    /// Protect this link with me, in this epoch or a later one. `asked` if somebody said so to an end that was running
    /// already; otherwise it says so by itself: because it was started, or lost sight of its peer.
    Hello { asked: bool },
    /// Yes, in this epoch.
    Welcome,
    /// I heard your welcome.
    Confirm,
    /// No, and why.
    Refuse(SessionRefusal),
    /// A frame of an epoch that I know nothing of: start again.
    Unknown,
    /// All that I sent is acknowledged; `rx_empty` once all that you sent is delivered as well.
    Bye { rx_empty: bool },
    /// This epoch is over for me. Needs no answer.
    Gone,
}

/// Reason why an end will not protect a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionRefusal {
    /// The peer speaks another version of the protocol.
    Version,
    /// The peer uses other classes.
    Classes,
    /// The peer's window is zero, or larger than sequence numbers allow.
    Window,
    /// The peer's longest frame is another.
    Mtu,
    /// The peer seals frames differently.
    Seal,
    /// This end was deactivated, and protection has not been asked for since.
    Deactivated,
}

/// Parameters on which both ends must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAgreement {
    /// Version of the protocol.
    pub version: u8,
    /// A bit for each class in use.
    pub classes: u8,
    /// True if this end protects the frames that it sends.
    pub protects: bool,
    /// Seal of frames against corruption or forgery; its meaning is the driver's, up to 127.
    pub seal: u8,
    /// The most frames this end keeps outstanding in a class, and the most that it has room for.
    pub window: u16,
    /// The longest frame this end sends.
    pub mtu: u16,
}

/// A life-cycle message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionMessage {
    /// Question or answer.
    pub kind: SessionKind,
    /// Distinguishes one incarnation of the sending end from its next.
    pub instance: u32,
    /// The instance that the sending end believes it talks to; 0 if none.
    pub heard: u32,
    /// The epoch that it is about.
    pub epoch: u32,
    /// Parameters to which the sending end would agree.
    pub agreement: LinkAgreement,
}

impl SessionMessage {
    /// Length on the wire, in bytes.
    pub const LEN: usize = 20;

    pub(super) fn emit(&self, out: &mut [u8]) {
        out[0] = match self.kind {
            SessionKind::Hello { asked: false } => 0,
            SessionKind::Welcome => 1,
            SessionKind::Confirm => 2,
            SessionKind::Unknown => 3,
            SessionKind::Bye { rx_empty: false } => 4,
            SessionKind::Bye { rx_empty: true } => 5,
            SessionKind::Gone => 6,
            SessionKind::Hello { asked: true } => 7,
            SessionKind::Refuse(reason) => 8 + reason as u8,
        };
        out[1] = self.agreement.version;
        out[2] = self.agreement.classes;
        out[3] = u8::from(self.agreement.protects) | self.agreement.seal << 1;
        out[4..6].copy_from_slice(&self.agreement.window.to_be_bytes());
        out[6..8].copy_from_slice(&self.agreement.mtu.to_be_bytes());
        out[8..12].copy_from_slice(&self.instance.to_be_bytes());
        out[12..16].copy_from_slice(&self.heard.to_be_bytes());
        out[16..20].copy_from_slice(&self.epoch.to_be_bytes());
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let kind = match bytes[0] {
            0 => SessionKind::Hello { asked: false },
            1 => SessionKind::Welcome,
            2 => SessionKind::Confirm,
            3 => SessionKind::Unknown,
            4 => SessionKind::Bye { rx_empty: false },
            5 => SessionKind::Bye { rx_empty: true },
            6 => SessionKind::Gone,
            7 => SessionKind::Hello { asked: true },
            8 => SessionKind::Refuse(SessionRefusal::Version),
            9 => SessionKind::Refuse(SessionRefusal::Classes),
            10 => SessionKind::Refuse(SessionRefusal::Window),
            11 => SessionKind::Refuse(SessionRefusal::Mtu),
            12 => SessionKind::Refuse(SessionRefusal::Seal),
            13 => SessionKind::Refuse(SessionRefusal::Deactivated),
            _ => return None,
        };
        Some(Self {
            kind,
            instance: long(8),
            heard: long(12),
            epoch: long(16),
            agreement: LinkAgreement {
                version: bytes[1],
                classes: bytes[2],
                protects: bytes[3] & 1 != 0,
                seal: bytes[3] >> 1,
                window: word(4),
                mtu: word(6),
            },
        })
    }
}
