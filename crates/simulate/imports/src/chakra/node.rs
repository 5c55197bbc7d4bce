//! A node of a trace, as far as it matters here.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TraceNodeKind {
    Computation,
    Send,
    Receive,
    Collective,
    /// Metadata, memory, storage, and whatever newer schemas add.
    #[default]
    Other,
}

impl From<u64> for TraceNodeKind {
    fn from(number: u64) -> Self {
        match number {
            4 => Self::Computation,
            5 => Self::Send,
            6 => Self::Receive,
            7 => Self::Collective,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceNode {
    pub id: u64,
    pub kind: TraceNodeKind,
    pub dependencies: Vec<u64>,
    /// Microseconds.
    pub duration: u64,
    /// `comm_size`.
    pub bytes: u64,
    pub from: Option<i64>,
    pub to: Option<i64>,
    pub tag: u64,
    /// `comm_type`.
    pub collective: Option<i64>,
    /// `pg_name`; empty if all ranks take part.
    pub group: String,
    pub has_operations: bool,
    pub has_dimensions: bool,
}

impl TraceNode {
    /// Takes a number from an attribute, if it is one that matters.
    pub(super) fn set(&mut self, name: &[u8], number: i64) -> Result<(), String> {
        let positive = || u64::try_from(number).map_err(|_| format!("{number}: expected no negative number"));
        match name {
            b"comm_size" => self.bytes = positive()?,
            b"comm_src" => self.from = Some(number),
            b"comm_dst" => self.to = Some(number),
            b"comm_tag" => self.tag = positive()?,
            b"comm_type" => self.collective = Some(number),
            b"num_ops" => self.has_operations = number > 0,
            _ => {}
        }
        Ok(())
    }
}
