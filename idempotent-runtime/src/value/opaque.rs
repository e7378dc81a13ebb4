//! Types whose contents are not shown, or only in part.

/// Implements `Debug` for a type by its name, and by the values that are named behind it.
macro_rules! opaque {
    (
        $name:ident $(<$($parameter:tt $(: $bound:path)?),*>)?
        $(, |$it:ident| $($field:ident = $value:expr),+)?
    ) => {
        impl$(<$($parameter $(: $bound)?),*>)? std::fmt::Debug for $name$(<$($parameter),*>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                $(
                    let $it = self;
                    $(shown.field(stringify!($field), &$value);)+
                )?
                shown.finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use opaque;
