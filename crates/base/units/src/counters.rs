//! Structs of counters that know their names, add up and subtract: no field can be forgotten by hand.

/// Declares a struct of public counters with `iter`, `since` and `+=`.
///
/// Fields are `u64`, or what `as TYPE` says. Fields behind `; most TYPE:` are maxima: adding takes the larger value, and
/// `since` leaves them as they are.
///
/// ```
/// units::counters! {
///     /// Frames of a port.
///     PortFrames:
///     sent,
///     /// Sent again.
///     retransmitted,
///     ; most u64:
///     /// The longest queue, in bytes.
///     longest_queue,
/// }
///
/// let mut sum = PortFrames { sent: 3, longest_queue: 100, ..PortFrames::default() };
/// sum += PortFrames { sent: 4, retransmitted: 1, longest_queue: 80 };
/// assert_eq!((sum.sent, sum.longest_queue), (7, 100));
/// assert_eq!(sum.iter().collect::<Vec<_>>(), [("sent", 7), ("retransmitted", 1), ("longest_queue", 100)]);
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$about:meta])* $counters:ident: $($(#[$doc:meta])* $name:ident,)* $(; most $high:ty: $($(#[$top_doc:meta])* $top:ident,)*)?) => {
        $crate::counters! { $(#[$about])* $counters as u64: $($(#[$doc])* $name,)* $(; most $high: $($(#[$top_doc])* $top,)*)? }
    };
    ($(#[$about:meta])* $counters:ident as $type:ty: $($(#[$doc:meta])* $name:ident,)* $(; most $high:ty: $($(#[$top_doc:meta])* $top:ident,)*)?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $counters {
            $($(#[$doc])* pub $name: $type,)*
            $($($(#[$top_doc])* pub $top: $high,)*)?
        }

        #[allow(dead_code, reason = "not every struct of counters needs all of them")]
        impl $counters {
            /// Each counter with its name, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                #[allow(clippy::useless_conversion, reason = "of u64 it is")]
                [$((stringify!($name), u64::from(self.$name)),)* $($((stringify!($top), u64::from(self.$top)),)*)?].into_iter()
            }

            /// Counts after `before`; maxima are those of the whole time.
            #[must_use]
            pub fn since(&self, before: &Self) -> Self {
                Self { $($name: self.$name - before.$name,)* $($($top: self.$top,)*)? }
            }
        }

        impl std::ops::AddAssign for $counters {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
                $($(self.$top = self.$top.max(other.$top);)*)?
            }
        }
    };
}
