//! Keys tell one call from another: tuples, templates, and all arguments.

use expect_test::expect;
use quote::quote;

use super::picture;

#[test]
fn a_method_with_a_tuple_key() {
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
        &expect![[r#"
            impl Shop {
                async fn add(&self, item: u64) -> Result<(), CartError> {
                    let __idempotent_prepared = {
                        static __IDEMPOTENT_SITE: private::Site = private::Site::new("cart.add")
                            .at(private::core::file!(), private::core::line!())
                            .key("(&self.cart, (item, \"eu\"))")
                            .scope("self.tenant()");
                        private::link!(__IDEMPOTENT_SITE);
                        let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                        private::Call::key(
                            &mut __idempotent_call,
                            &(
                                private::part(&self.cart),
                                private::part(&(private::part(&item), private::part(&"eu"))),
                            ),
                        );
                        private::Call::scope(&mut __idempotent_call, &self.tenant());
                        private::Call::argument(&mut __idempotent_call, "item", &item);
                        __idempotent_call
                    };
                    let __idempotent_body = async move {
                        if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                            Result<(), CartError>,
                        > {
                            return __idempotent_outcome;
                        }
                        let _ = (&item, &self);
                        { self.push(item).await }
                    };
                    let __idempotent_body = private::core::pin::pin!(
                        private::core::option::Option::Some(__idempotent_body)
                    );
                    let __idempotent_outcome = __idempotent_prepared
                        .run(__idempotent_body, private::Recorded, private::Whole)
                        .await;
                    return __idempotent_outcome;
                }
            }
        "#]],
    );
}

#[test]
fn a_template_key_and_the_old_one() {
    picture(
        quote!(
            key = "{req.cart}:{req.seq}",
            also_accept = "{req.cart}/{req.seq}",
            crate = my::runtime
        ),
        quote! {
            async fn put(req: Put) -> Result<u32, Error> { Ok(1) }
        },
        &expect![[r#"
            async fn put(req: Put) -> Result<u32, Error> {
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: my::runtime::__private::Site = my::runtime::__private::Site::new(
                            my::runtime::__private::core::concat!(
                                my::runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                my::runtime::__private::core::module_path!(), "::", "put"
                            ),
                        )
                        .at(
                            my::runtime::__private::core::file!(),
                            my::runtime::__private::core::line!(),
                        )
                        .key("\"{req.cart}:{req.seq}\"");
                    my::runtime::__private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = my::runtime::__private::begin(&__IDEMPOTENT_SITE);
                    my::runtime::__private::Call::key(
                        &mut __idempotent_call,
                        &my::runtime::__private::Template::new()
                            .part(&req.cart)
                            .literal(":")
                            .part(&req.seq),
                    );
                    my::runtime::__private::Call::also_accept_key(
                        &mut __idempotent_call,
                        &my::runtime::__private::Template::new()
                            .part(&req.cart)
                            .literal("/")
                            .part(&req.seq),
                    );
                    my::runtime::__private::Call::argument(&mut __idempotent_call, "req", &req);
                    __idempotent_call
                };
                let __idempotent_body = async move {
                    if let my::runtime::__private::core::option::Option::Some(
                        __idempotent_outcome,
                    ) = my::runtime::__private::core::option::Option::None::<Result<u32, Error>> {
                        return __idempotent_outcome;
                    }
                    { Ok(1) }
                };
                let __idempotent_body = my::runtime::__private::core::pin::pin!(
                    my::runtime::__private::core::option::Option::Some(__idempotent_body)
                );
                let __idempotent_outcome = __idempotent_prepared
                    .run(
                        __idempotent_body,
                        my::runtime::__private::Recorded,
                        my::runtime::__private::Whole,
                    )
                    .await;
                return __idempotent_outcome;
            }
        "#]],
    );
}

#[test]
fn all_arguments_as_the_key() {
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
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: private::Site = private::Site::new(
                            private::core::concat!(
                                private::core::env!("CARGO_PKG_NAME"), "::",
                                private::core::module_path!(), "::", "send"
                            ),
                        )
                        .at(private::core::file!(), private::core::line!())
                        .in_flight(private::InFlight::Reject)
                        .on_crash(private::OnCrash::Rerun)
                        .on_cancel(private::OnCancel::Stop);
                    private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                    private::Call::key_from_arguments(&mut __idempotent_call);
                    #[cfg(feature = "mail")]
                    private::Call::argument(&mut __idempotent_call, "to", &to);
                    private::Call::argument(&mut __idempotent_call, "type", &r#type);
                    __idempotent_call
                };
                let __idempotent_body = async move {
                    if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                        Result<(), MailError>,
                    > {
                        return __idempotent_outcome;
                    }
                    { Ok(()) }
                };
                let __idempotent_body = private::core::pin::pin!(
                    private::core::option::Option::Some(__idempotent_body)
                );
                let __idempotent_outcome = __idempotent_prepared
                    .run(__idempotent_body, private::Recorded, private::Whole)
                    .await;
                return __idempotent_outcome;
            }
        "#]],
    );
}
