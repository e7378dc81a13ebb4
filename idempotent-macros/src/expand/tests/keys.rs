//! What tells one call from another: tuples, templates, and all arguments.

use expect_test::expect;
use quote::quote;

use super::picture;

#[test]
fn a_method_with_a_tuple_key() {
    // Input:
    picture(
        quote!(
            name = "cart.add",
            key = (&self.cart, (item, "eu")),
            scope = self.tenant()
        ),
        quote! {
            async fn add(&self, item: u64) -> Result<(), CartError> {
                self.push(item).await
            }
        },
        // Output:
        &expect![[r#"
            impl Shop {
                async fn add(&self, item: u64) -> Result<(), CartError> {
                    #[allow(clippy::used_underscore_binding)]
                    let prepared_idempotent_call = {
                        static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                                "cart.add",
                            )
                            .key("(&self.cart, (item, \"eu\"))")
                            .scope("self.tenant()");
                        let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                        ::idempotent_runtime::__private::Call::key(
                            &mut __call,
                            &(
                                ::idempotent_runtime::__private::part(&self.cart),
                                ::idempotent_runtime::__private::part(
                                    &(
                                        ::idempotent_runtime::__private::part(&item),
                                        ::idempotent_runtime::__private::part(&"eu"),
                                    ),
                                ),
                            ),
                        );
                        ::idempotent_runtime::__private::Call::scope(&mut __call, &self.tenant());
                        ::idempotent_runtime::__private::Call::argument(&mut __call, "item", &item);
                        __call
                    };
                    let __body = async move {
                        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                            Result<(), CartError>,
                        > {
                            return __ret;
                        }
                        #[allow(clippy::used_underscore_binding)]
                        let _ = (&item, &self);
                        { self.push(item).await }
                    };
                    let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                    #[allow(clippy::large_futures)]
                    let __ret = prepared_idempotent_call
                        .run(
                            __body,
                            ::idempotent_runtime::__private::Recorded,
                            ::idempotent_runtime::__private::Whole,
                        )
                        .await;
                    __ret
                }
            }
        "#]],
    );
}

#[test]
fn a_template_key_and_the_old_one() {
    // Input:
    picture(
        quote!(
            key = "{req.cart}:{req.seq}",
            also_accept = "{req.cart}/{req.seq}",
            crate = my::runtime
        ),
        quote! {
            async fn put(req: Put) -> Result<u32, Error> { Ok(1) }
        },
        // Output:
        &expect![[r#"
            async fn put(req: Put) -> Result<u32, Error> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: my::runtime::__private::Site = my::runtime::__private::Site::new(
                            my::runtime::__private::core::concat!(
                                my::runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                my::runtime::__private::core::module_path!(), "::", "put"
                            ),
                        )
                        .key("\"{req.cart}:{req.seq}\"");
                    let mut __call = my::runtime::__private::begin(&__IDEMPOTENT_SITE);
                    my::runtime::__private::Call::key(
                        &mut __call,
                        &my::runtime::__private::Template::new()
                            .part(&req.cart)
                            .literal(":")
                            .part(&req.seq),
                    );
                    my::runtime::__private::Call::also_accept_key(
                        &mut __call,
                        &my::runtime::__private::Template::new()
                            .part(&req.cart)
                            .literal("/")
                            .part(&req.seq),
                    );
                    my::runtime::__private::Call::argument(&mut __call, "req", &req);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<u32, Error>,
                    > {
                        return __ret;
                    }
                    #[allow(clippy::used_underscore_binding)]
                    let _ = (&req,);
                    { Ok(1) }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(__body, my::runtime::__private::Recorded, my::runtime::__private::Whole)
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn all_arguments_as_the_key() {
    // Input:
    picture(
        quote!(
            key_from_arguments,
            in_flight = reject,
            on_crash = rerun,
            on_cancel = stop
        ),
        quote! {
            async fn send<const N: usize>(#[cfg(feature = "mail")] to: [u8; N], r#type: String) -> Result<(), MailError>
            where
                [u8; N]: Sized,
            {
                #![allow(clippy::unused_async)]
                Ok(())
            }
        },
        // Output:
        &expect![[r#"
            async fn send<const N: usize>(
                #[cfg(feature = "mail")]
                to: [u8; N],
                r#type: String,
            ) -> Result<(), MailError>
            where
                [u8; N]: Sized,
            {
                #![allow(clippy::unused_async)]
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            ::idempotent_runtime::__private::core::concat!(
                                ::idempotent_runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                ::idempotent_runtime::__private::core::module_path!(), "::", "send"
                            ),
                        )
                        .in_flight(::idempotent_runtime::__private::InFlight::Reject)
                        .on_crash(::idempotent_runtime::__private::OnCrash::Rerun)
                        .on_cancel(::idempotent_runtime::__private::OnCancel::Stop);
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    ::idempotent_runtime::__private::Call::key_from_arguments(&mut __call);
                    #[cfg(feature = "mail")]
                    ::idempotent_runtime::__private::Call::argument(&mut __call, "to", &to);
                    ::idempotent_runtime::__private::Call::argument(&mut __call, "type", &r#type);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<(), MailError>,
                    > {
                        return __ret;
                    }
                    #[allow(clippy::used_underscore_binding)]
                    let _ = (&r#type, #[cfg(feature = "mail")] &to);
                    { Ok(()) }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Recorded,
                        ::idempotent_runtime::__private::Whole,
                    )
                    .await;
                __ret
            }
        "#]],
    );
}
