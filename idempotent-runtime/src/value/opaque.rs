//! Types whose contents are not shown.

/// Implements `Debug` for a type by its name alone.
macro_rules! opaque {
    ($name:ident $(<$($parameter:tt),*>)?) => {
        impl$(<$($parameter),*>)? std::fmt::Debug for $name$(<$($parameter),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use opaque;
