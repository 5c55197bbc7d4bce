//! A TCP segment as a script writes it: fields of the header, with sequence numbers relative to the first of each side.

use std::fmt;

/// Flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpFlags(u8);

impl TcpFlags {
    pub(crate) const FIN: Self = Self(0x01);
    pub(crate) const SYN: Self = Self(0x02);
    pub(crate) const RST: Self = Self(0x04);
    pub(crate) const PSH: Self = Self(0x08);
    pub(crate) const ACK: Self = Self(0x10);
    pub(crate) const URG: Self = Self(0x20);
    pub(crate) const ECE: Self = Self(0x40);
    pub(crate) const CWR: Self = Self(0x80);
    /// Flags in the order in which scripts write them.
    const LETTERS: [(char, Self); 8] = [
        ('S', Self::SYN),
        ('F', Self::FIN),
        ('R', Self::RST),
        ('P', Self::PSH),
        ('U', Self::URG),
        ('E', Self::ECE),
        ('W', Self::CWR),
        ('.', Self::ACK),
    ];

    /// Flags from the bits of the header.
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// `-` is none; `None` if a letter is unknown.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "-" {
            return Some(Self::default());
        }
        let flag = |letter| Self::LETTERS.iter().find(|(of, _)| *of == letter).map(|(_, flag)| *flag);
        text.chars().try_fold(Self::default(), |flags, letter| Some(flags.with(flag(letter)?, true)))
    }

    pub(crate) fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    #[must_use]
    pub(crate) fn with(self, flag: Self, on: bool) -> Self {
        if on { Self(self.0 | flag.0) } else { Self(self.0 & !flag.0) }
    }
}

impl fmt::Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return write!(f, "-");
        }
        Self::LETTERS.iter().filter(|(_, flag)| self.has(*flag)).try_for_each(|(letter, _)| write!(f, "{letter}"))
    }
}

/// An option of a TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderOption {
    Nop,
    EndOfList,
    Mss(u16),
    WindowScale(u8),
    SackPermitted,
    Sack(Vec<(u32, u32)>),
    Timestamp {
        value: u32,
        echo: u32,
    },
    /// One that scripts cannot name; its kind.
    Other(u8),
}

impl fmt::Display for HeaderOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nop => write!(f, "nop"),
            Self::EndOfList => write!(f, "eol"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackPermitted => write!(f, "sackOK"),
            Self::Sack(blocks) => {
                write!(f, "sack")?;
                blocks.iter().try_for_each(|(from, to)| write!(f, " {from}:{to}"))
            }
            Self::Timestamp { value, echo } => write!(f, "TS val {value} ecr {echo}"),
            Self::Other(kind) => write!(f, "option {kind}"),
        }
    }
}

/// The ECN field of the IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EcnField {
    #[default]
    NotCapable,
    Ect1,
    Ect0,
    Experienced,
}

impl EcnField {
    pub(crate) fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Experienced,
        }
    }

    pub(crate) fn bits(self) -> u8 {
        self as u8
    }
}

/// Segment as a script writes it; a field that is `None` is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DrillSegment {
    pub(crate) flags: TcpFlags,
    pub(crate) seq: u32,
    pub(crate) len: u32,
    pub(crate) ack: u32,
    /// The field of the header, not scaled.
    pub(crate) window: Option<u16>,
    /// `None` for `<...>`.
    pub(crate) options: Option<Vec<HeaderOption>>,
    pub(crate) ecn: Option<EcnField>,
}

impl DrillSegment {
    pub(crate) fn is(&self, flag: TcpFlags) -> bool {
        self.flags.has(flag)
    }

    /// The number behind its last byte; flags that count are not included.
    pub(crate) fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len)
    }

    /// Takes in the segment that follows this one in the stream, as a super-segment would hold both; false if it does not.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let follows = self.len > 0 && next.len > 0 && next.seq == self.end() && next.ack == self.ack;
        if follows {
            self.len += next.len;
            // Flags that only the last has.
            for flag in [TcpFlags::PSH, TcpFlags::FIN] {
                self.flags = self.flags.with(flag, next.is(flag));
            }
        }
        follows
    }

    pub(crate) fn timestamp(&self) -> Option<(u32, u32)> {
        self.options.iter().flatten().find_map(|option| match option {
            HeaderOption::Timestamp { value, echo } => Some((*value, *echo)),
            _ => None,
        })
    }

    pub(crate) fn timestamp_mut(&mut self) -> Option<(&mut u32, &mut u32)> {
        self.options.iter_mut().flatten().find_map(|option| match option {
            HeaderOption::Timestamp { value, echo } => Some((value, echo)),
            _ => None,
        })
    }
}

/// Writes the segment in a script's notation.
impl fmt::Display for DrillSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ecn {
            Some(EcnField::Ect0) => write!(f, "[ect0] ")?,
            Some(EcnField::Ect1) => write!(f, "[ect1] ")?,
            Some(EcnField::Experienced) => write!(f, "[ce] ")?,
            Some(EcnField::NotCapable) | None => {}
        }
        write!(f, "{} {}:{}({})", self.flags, self.seq, self.end(), self.len)?;
        if self.is(TcpFlags::ACK) {
            write!(f, " ack {}", self.ack)?;
        }
        if let Some(window) = self.window {
            write!(f, " win {window}")?;
        }
        match &self.options {
            None => write!(f, " <...>"),
            Some(options) if options.is_empty() => Ok(()),
            Some(options) => {
                let texts: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, " <{}>", texts.join(","))
            }
        }
    }
}
