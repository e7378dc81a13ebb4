//! The setters of builders.

/// Writes setters: methods that take a builder, set something, and return it. `it` is the builder.
#[doc(hidden)]
#[macro_export]
macro_rules! __setters {
    ($($(#[$about:meta])* $name:ident($it:ident $(, $given:ident: $type:ty)*) $set:block)*) => {$(
        $(#[$about])*
        pub fn $name(mut self $(, $given: $type)*) -> Self {
            let $it = &mut self;
            $set
            self
        }
    )*};
}

#[doc(hidden)]
pub use __setters as setters;
