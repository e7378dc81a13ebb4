//! The numbers by which stores keep the variants of an enum.

/// Gives an enum the number of each variant. `$what` names in the documentation what a variant is.
macro_rules! codes {
    ($name:ident, $what:literal: $($variant:ident = $code:literal),*) => {
        impl $name {
            #[doc = concat!("The number that stands for the ", $what, " in a store: stable over releases.")]
            #[must_use]
            pub fn code(self) -> u8 {
                match self {
                    $($name::$variant => $code,)*
                }
            }

            #[doc = concat!("The ", $what, " behind a stored number; `None` where there is none.")]
            #[must_use]
            pub fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub(super) use codes;
