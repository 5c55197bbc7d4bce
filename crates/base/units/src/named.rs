//! Enums whose values have names, on a command line and in a file.

/// `FromStr` and `Display` of an enum, from one list of names. An unknown name is refused with what was expected.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Side { Left, Right }
/// units::named!(Side, "left or right", "left" => Self::Left, "right" => Self::Right,);
///
/// assert_eq!("left".parse::<Side>().unwrap().to_string(), "left");
/// assert_eq!("top".parse::<Side>().unwrap_err().to_string(), "expected left or right");
/// ```
#[macro_export]
macro_rules! named {
    ($type:ty, $what:literal, $($name:literal => $value:expr,)*) => {
        impl std::str::FromStr for $type {
            type Err = $crate::ParseError;
            fn from_str(text: &str) -> Result<Self, $crate::ParseError> {
                match text {
                    $($name => Ok($value),)*
                    _ => Err($crate::ParseError::new($what)),
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match *self {
                    $(value if value == $value => $name,)*
                    _ => unreachable!("every value has a name"),
                })
            }
        }
    };
}
