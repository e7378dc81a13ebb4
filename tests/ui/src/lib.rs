//! The code that the attribute accepts and refuses: the cases stand in `pass/` and `fail/`.

/// The runtime, as a crate of a company's may re-export it.
pub use idempotent_runtime as protection;

/// Annotates a function of a crate that does not depend on the runtime itself.
#[macro_export]
macro_rules! protected {
    ($name:ident($id:ident: $type:ty) -> $result:ty, $key:expr, $on_error:path, $ask:path, $body:block) => {
        #[$crate::protection::idempotent(
            key = $key,
            on_error = $on_error,
            on_crash = reconcile($ask),
            crate = $crate::protection
        )]
        pub async fn $name($id: $type) -> $result $body
    };
}
