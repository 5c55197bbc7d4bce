//! Turns the list of transports into the enums that hold their setups, machines and segments, with a method for each one of
//! [`SimTransport`](super::SimTransport).

/// Makes them; the first argument is a dollar sign, for the macro that is made too.
macro_rules! transports {
    (($d:tt) $($(#[$when:meta])* $name:ident: $machine:ty, from $setup:ty;)*) => {
        /// Body of a packet.
        #[derive(Clone, Copy, Debug)]
        pub enum Body {
            $($(#[$when])* $name(<$machine as Machine>::Frame),)*
            Handshake(Handshake),
            /// A message about a reservation, which is in the tag of the packet.
            Reservation,
        }

        /// A transport as a setup has it.
        #[derive(Clone, Debug)]
        pub enum TransportSetup {
            $($(#[$when])* $name($setup),)*
        }

        /// One end's machine.
        #[derive(Debug)]
        pub(crate) enum Transport {
            $($(#[$when])* $name(Box<Driver<$machine>>),)*
        }

        $($(#[$when])* impl BodyConversion for $machine {
            #[inline]
            fn wrap(frame: Self::Frame) -> Body {
                Body::$name(frame)
            }

            #[inline]
            fn unwrap(body: Body) -> Option<Self::Frame> {
                if let Body::$name(frame) = body { Some(frame) } else { None }
            }
        })*

        const LISTED: &[ListedTransport] = &[$($(#[$when])* ListedTransport {
            names: <$machine>::NAMES,
            recovery: <$machine>::RECOVERY,
            read: |table, name| <$machine>::read(table, name).map(TransportSetup::$name),
        },)*];

        /// The keys of each.
        pub const KEYS: &[Keys] = &[$($(#[$when])* <$machine as SimTransport>::KEYS,)*];

        impl TransportSetup {
            /// One end of a connection.
            pub(crate) fn connect(&self, at: &mut Site<'_>) -> Transport {
                match self {
                    $($(#[$when])* Self::$name(setup) => {
                        Transport::$name(Box::new(Driver::new(<$machine>::connect(setup, at))))
                    })*
                }
            }

            /// Lengths of its packets.
            pub fn sizes(&self) -> PacketSizes {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::sizes(setup),)* }
            }

            /// The most bytes that one message may have.
            pub fn largest_message(&self) -> u64 {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::largest_message(setup),)* }
            }

            /// Lengths of its headers, where they can be set.
            pub fn framing_mut(&mut self) -> Option<&mut RdmaFraming> {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::framing_mut(setup),)* }
            }

            /// Configuration of the congestion control of its RDMA connections, to be changed.
            pub fn congestion_mut(&mut self) -> Option<&mut ControllerConfig> {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::congestion_mut(setup),)* }
            }

            /// Configuration of the congestion control of its connections.
            pub fn congestion(&self) -> ControllerConfig {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::congestion(setup),)* }
            }

            /// The pool that all its connections at a host share.
            pub fn shared_pool(&self) -> Option<PoolConfig> {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::shared_pool(setup),)* }
            }

            /// Policy by which a host schedules the messages that it receives, if it does.
            pub fn grant_policy(&self) -> Option<GrantPolicy> {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::grant_policy(setup),)* }
            }

            /// True if its segments have priorities of their own.
            pub fn has_levels(&self) -> bool {
                match self { $($(#[$when])* Self::$name(setup) => <$machine>::has_levels(setup),)* }
            }

            /// True if it sends messages that the interface handles without its host.
            pub fn is_rdma(&self) -> bool {
                match self { $($(#[$when])* Self::$name(_) => <$machine>::IS_RDMA,)* }
            }

            /// True if a connection may begin with a handshake.
            pub(crate) fn shakes_hands(&self) -> bool {
                match self { $($(#[$when])* Self::$name(_) => <$machine>::SHAKES_HANDS,)* }
            }

            /// True if lost data is sent again.
            pub fn is_reliable(&self) -> bool {
                match self { $($(#[$when])* Self::$name(_) => <$machine>::IS_RELIABLE,)* }
            }
        }

        impl Body {
            /// True if the interface handles it without its host.
            #[inline]
            pub(crate) fn is_rdma(&self) -> bool {
                match self {
                    $($(#[$when])* Self::$name(_) => <$machine>::IS_RDMA,)*
                    Self::Handshake(_) | Self::Reservation => false,
                }
            }

            /// Telemetry: switches write some on it, or it brings some back.
            #[inline]
            pub(crate) fn telemetry(&self) -> Telemetry {
                match self {
                    $($(#[$when])* Self::$name(frame) => <$machine>::telemetry(frame),)*
                    Self::Handshake(_) | Self::Reservation => Telemetry::None,
                }
            }

            /// True if switches write telemetry on it.
            #[inline]
            pub(crate) fn collects_telemetry(&self) -> bool {
                self.telemetry() == Telemetry::Collects
            }

            /// Position and length in a stream, if receive offload may join segments that follow each other.
            #[inline]
            pub(crate) fn in_stream(&self) -> Option<(u64, u32)> {
                match self {
                    $($(#[$when])* Self::$name(frame) => <$machine>::in_stream(frame),)*
                    Self::Handshake(_) | Self::Reservation => None,
                }
            }

            /// IP protocol, source and destination port.
            pub fn ports(&self, who: Conversation) -> (u8, [u16; 2]) {
                match self {
                    $($(#[$when])* Self::$name(_) => (<$machine>::PROTOCOL, <$machine>::ports(who)),)*
                    Self::Handshake(_) => (ipv4::TCP, tcp::ports(who)),
                    Self::Reservation => (0, [0; 2]),
                }
            }

            /// TCP's numbers, and a word that stands for the content.
            pub fn signature(&self) -> (Option<StreamSegment>, u64) {
                match self {
                    $($(#[$when])* Self::$name(frame) => <$machine>::signature(frame),)*
                    Self::Handshake(_) => (Some(tcp::SYN), 0),
                    Self::Reservation => (None, 0),
                }
            }

            /// Writes the headers that it would have on a real wire.
            pub fn write_headers(&self, writer: &mut HeaderWriter<'_>) {
                match self {
                    $($(#[$when])* Self::$name(frame) => <$machine>::write_headers(frame, writer),)*
                    Self::Handshake(step) => tcp::write_handshake(*step, writer),
                    Self::Reservation => writer.reservation(),
                }
            }
        }

        /// Does the same to the driver of each transport.
        macro_rules! each_transport {
            ($d transport:expr, $d driver:ident => $d what:expr) => {
                match $d transport {
                    $($(#[$when])* $crate::net::transports::Transport::$name($d driver) => $d what,)*
                }
            };
        }
        pub(super) use each_transport;
    };
}
