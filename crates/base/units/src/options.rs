//! Options that a command line and a file may both give.

/// Completes options that were not given here by those that were given there.
pub trait Merge {
    /// These values, completed by those of `other`.
    #[must_use]
    fn merge(self, other: Self) -> Self;
}

impl<T> Merge for Option<T> {
    fn merge(self, other: Self) -> Self {
        self.or(other)
    }
}

/// A switch can only be turned on.
impl Merge for bool {
    fn merge(self, other: Self) -> Self {
        self || other
    }
}

impl<T> Merge for Vec<T> {
    fn merge(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

/// A struct of options and its `or`, from one list of fields.
#[macro_export]
macro_rules! options {
    ($(#[$attribute:meta])* $public:vis struct $name:ident {
        $($(#[$of_field:meta])* $public_field:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$attribute])*
        $public struct $name {
            $($(#[$of_field])* $public_field $field: $type,)*
        }

        impl $name {
            /// Fills options that are not set from `other`.
            #[must_use]
            $public fn or(self, other: Self) -> Self {
                Self { $($field: $crate::Merge::merge(self.$field, other.$field),)* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    options! {
        #[derive(Clone, Debug, Default, PartialEq)]
        struct Example {
            name: Option<u8>,
            on: bool,
            list: Vec<u8>,
        }
    }

    #[test]
    fn what_is_given_first_counts() {
        let line = Example { name: Some(1), on: false, list: vec![] };
        let file = Example { name: Some(2), on: true, list: vec![3] };
        assert_eq!(line.or(file), Example { name: Some(1), on: true, list: vec![3] });
        let nothing = Example::default();
        assert_eq!(nothing.clone().or(nothing.clone()), nothing);
    }
}
