//! The shapes of functions: free ones and methods, with patterns, already boxed, and beside a wrong
//! attribute.

use expect_test::expect;
use quote::quote;

use super::{picture, picture_in_full};

#[test]
fn a_function_with_a_skipped_argument() {
    picture_in_full(
        quote!(
            name = "payments.charge",
            key = req.order_id,
            scope = req.merchant,
            ttl = "24h",
            skip(gateway)
        ),
        quote! {
            /// Charges once.
            #[must_use]
            pub async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
                gateway.charge(req).await
            }
        },
        &expect![[r#"
            /// Charges once.
            #[must_use]
            pub async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            "payments.charge",
                        )
                        .at(
                            ::idempotent_runtime::__private::core::file!(),
                            ::idempotent_runtime::__private::core::line!(),
                        )
                        .key("req.order_id")
                        .scope("req.merchant")
                        .ttl(::idempotent_runtime::__private::Duration::new(86400u64, 0u32));
                    ::idempotent_runtime::__private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = ::idempotent_runtime::__private::begin(
                        &__IDEMPOTENT_SITE,
                    );
                    ::idempotent_runtime::__private::Call::key(
                        &mut __idempotent_call,
                        &req.order_id,
                    );
                    ::idempotent_runtime::__private::Call::scope(
                        &mut __idempotent_call,
                        &req.merchant,
                    );
                    ::idempotent_runtime::__private::Call::argument(
                        &mut __idempotent_call,
                        "req",
                        req,
                    );
                    __idempotent_call
                };
                let __idempotent_body = async move {
                    if let ::idempotent_runtime::__private::core::option::Option::Some(
                        __idempotent_outcome,
                    ) = ::idempotent_runtime::__private::core::option::Option::None::<
                        Result<Receipt, PayError>,
                    > {
                        return __idempotent_outcome;
                    }
                    let _ = (&req, &gateway);
                    { gateway.charge(req).await }
                };
                let __idempotent_body = ::idempotent_runtime::__private::core::pin::pin!(
                    ::idempotent_runtime::__private::core::option::Option::Some(__idempotent_body)
                );
                let __idempotent_outcome = __idempotent_prepared
                    .run(
                        __idempotent_body,
                        ::idempotent_runtime::__private::Recorded,
                        ::idempotent_runtime::__private::Whole,
                    )
                    .await;
                return __idempotent_outcome;
            }
        "#]],
    );
}

#[test]
fn a_derived_name_and_a_pattern() {
    picture(
        quote!(key = body.id, skip(app)),
        quote! {
            async fn create<T: Store>(State(app): State<App<T>>, Json(body): Json<Order>) -> Result<Json<Order>, ApiError> {
                app.insert(&body).await?;
                Ok(Json(body))
            }
        },
        &expect![[r#"
            async fn create<T: Store>(
                State(app): State<App<T>>,
                Json(body): Json<Order>,
            ) -> Result<Json<Order>, ApiError> {
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: private::Site = private::Site::new(
                            private::core::concat!(
                                private::core::env!("CARGO_PKG_NAME"), "::",
                                private::core::module_path!(), "::", "create"
                            ),
                        )
                        .at(private::core::file!(), private::core::line!())
                        .key("body.id");
                    private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                    private::Call::key(&mut __idempotent_call, &body.id);
                    private::Call::argument(&mut __idempotent_call, "body", &body);
                    __idempotent_call
                };
                let __idempotent_body = async move {
                    if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                        Result<Json<Order>, ApiError>,
                    > {
                        return __idempotent_outcome;
                    }
                    let _ = (&body, &app);
                    {
                        app.insert(&body).await?;
                        Ok(Json(body))
                    }
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

#[test]
fn a_method_that_async_trait_has_boxed() {
    picture(
        quote!(name = "pay", key = (self.shop, body.id), skip(app)),
        quote! {
            fn pay<'life0, 'life1, 'async_trait>(
                &'life0 self,
                app: &'life1 App,
                __arg2: Json<Body>,
            ) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = Result<Paid, PayError>> + Send + 'async_trait>>
            where
                'life0: 'async_trait,
                'life1: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Result<Paid, PayError>> {
                        #[allow(unreachable_code)]
                        return __ret;
                    }
                    let __self = self;
                    let Json(body) = { let __arg2 = __arg2; __arg2 };
                    let __ret: Result<Paid, PayError> = { __self.pay_now(app, body).await };
                    #[allow(unreachable_code)]
                    __ret
                })
            }
        },
        &expect![[r#"
            impl Shop {
                fn pay<'life0, 'life1, 'async_trait>(
                    &'life0 self,
                    app: &'life1 App,
                    __arg2 @ _: Json<Body>,
                ) -> ::core::pin::Pin<
                    Box<
                        dyn ::core::future::Future<
                            Output = Result<Paid, PayError>,
                        > + Send + 'async_trait,
                    >,
                >
                where
                    'life0: 'async_trait,
                    'life1: 'async_trait,
                    Self: 'async_trait,
                {
                    Box::pin(async move {
                        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                            Result<Paid, PayError>,
                        > {
                            #[allow(unreachable_code)] return __ret;
                        }
                        let __self = self;
                        let Json(body) = {
                            let __arg2 = __arg2;
                            __arg2
                        };
                        let __ret: Result<Paid, PayError> = {
                            let __idempotent_prepared = {
                                static __IDEMPOTENT_SITE: private::Site = private::Site::new("pay")
                                    .at(private::core::file!(), private::core::line!())
                                    .key("(self.shop, body.id)");
                                private::link!(__IDEMPOTENT_SITE);
                                let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                                private::Call::key(
                                    &mut __idempotent_call,
                                    &(private::part(&__self.shop), private::part(&body.id)),
                                );
                                private::Call::argument(&mut __idempotent_call, "body", &body);
                                __idempotent_call
                            };
                            let __idempotent_body = async move {
                                if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                                    Result<Paid, PayError>,
                                > {
                                    return __idempotent_outcome;
                                }
                                let _ = (&body, &app, &__self);
                                { __self.pay_now(app, body).await }
                            };
                            let __idempotent_body = private::core::pin::pin!(
                                private::core::option::Option::Some(__idempotent_body)
                            );
                            let __idempotent_outcome = __idempotent_prepared
                                .run(__idempotent_body, private::Recorded, private::Whole)
                                .await;
                            return __idempotent_outcome;
                        };
                        #[allow(unreachable_code)] __ret
                    })
                }
            }
        "#]],
    );
}

#[test]
fn a_wrong_attribute_leaves_the_function_as_written() {
    picture(
        quote!(ttl = "1x", tll = 5),
        quote! {
            async fn charge(req: &Charge) -> Result<Receipt, PayError> { gateway.charge(req).await }
        },
        &expect![[r#"
            compile_error! {
                "unknown unit `x` in the duration `1x`; the units are `w`, `d`, `h`, `m`, `s` and `ms`, as in `\"24h\"`, `\"1h30m\"` or `\"500ms\"`"
            }
            compile_error! {
                "unknown argument `tll`, did you mean `ttl`? known are `key`, `scope`, `ttl`, `name`, `skip`, `in_flight`, `on_error`, `on_crash`, `on_cancel`, `lease`, `handle`, `key_from_arguments`, `fingerprint`, `on_missing_key`, `on_outage`, `tx`, `commits_errors`, `outcome`, `version`, `upgrade`, `also_accept` and `crate`"
            }
            compile_error! {
                "`#[idempotent]` needs a `key`, which says when two calls are the same one: write `key = …` with the argument `req`, or `key_from_arguments`"
            }
            async fn charge(req: &Charge) -> Result<Receipt, PayError> {
                gateway.charge(req).await
            }
        "#]],
    );
}

#[test]
fn a_function_that_joins_a_transaction() {
    picture(
        quote!(name = "ledger.post", key = transfer.id, tx = tx),
        quote! {
            async fn post(mut tx: &mut PgConnection, transfer: &Transfer) -> Result<Receipt, PostError> {
                transfer.apply(&mut tx).await
            }
        },
        &expect![[r#"
            async fn post(tx: &mut PgConnection, transfer: &Transfer) -> Result<Receipt, PostError> {
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: private::Site = private::Site::new("ledger.post")
                        .at(private::core::file!(), private::core::line!())
                        .key("transfer.id");
                    private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                    private::Call::key(&mut __idempotent_call, &transfer.id);
                    private::Call::argument(&mut __idempotent_call, "transfer", transfer);
                    __idempotent_call
                };
                let mut __idempotent_joined = match __idempotent_prepared
                    .join(&mut *tx, private::Released, private::Whole)
                    .await
                {
                    private::core::result::Result::Ok(__idempotent_joined) => __idempotent_joined,
                    private::core::result::Result::Err(__idempotent_outcome) => {
                        return __idempotent_outcome;
                    }
                };
                let __idempotent_outcome = {
                    let __idempotent_lent = &mut *tx;
                    let __idempotent_body = async move {
                        if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                            Result<Receipt, PostError>,
                        > {
                            return __idempotent_outcome;
                        }
                        let _ = (&transfer,);
                        let mut tx = __idempotent_lent;
                        { transfer.apply(&mut tx).await }
                    };
                    let __idempotent_body = private::core::pin::pin!(
                        private::core::option::Option::Some(__idempotent_body)
                    );
                    __idempotent_joined.run(__idempotent_body).await
                };
                let __idempotent_outcome = __idempotent_joined
                    .finish(&mut *tx, __idempotent_outcome)
                    .await;
                return __idempotent_outcome;
            }
        "#]],
    );
}
