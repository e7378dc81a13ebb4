//! A form of the page, as a browser without a script sends it.

use axum::{Router, body::Body};
use http::{Request, StatusCode};
use idempotent_runtime::identity::RecordId;
use tower::ServiceExt as _;

use crate::shop::{Answer, ask, read};

/// A form, filled in.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    path: String,
    fields: Vec<(String, String)>,
    headers: Vec<(&'static str, &'static str)>,
}

impl Form {
    pub(crate) async fn of(app: &Router, id: RecordId, act: &str) -> Self {
        Self::opened(app, &format!("/records/{}/{act}", id.to_hex())).await
    }

    /// The form of a page, with its hidden fields.
    pub(crate) async fn opened(app: &Router, path: &str) -> Self {
        Self::opened_by("anna", app, path).await
    }

    /// The same, as this person opens it.
    pub(crate) async fn opened_by(person: &'static str, app: &Router, path: &str) -> Self {
        let form = ask(app, Request::get(path).header("x-user", person)).await;
        assert_eq!(form.status, StatusCode::OK, "{}", form.text);
        let path = path.split('?').next().expect("a path");
        Self::shown(person, &form, path)
    }

    /// The form of an answer, with its hidden fields, which is sent to this path.
    pub(crate) fn shown(person: &'static str, form: &Answer, path: &str) -> Self {
        let hidden = form
            .text
            .split("<input type=\"hidden\" ")
            .skip(1)
            .map(|field| {
                let value = |name: &str| {
                    let (_, rest) = field
                        .split_once(&format!("{name}=\""))
                        .expect("an attribute");
                    let value = rest.split('"').next().expect("its end");
                    value.replace("&quot;", "\"").replace("&amp;", "&")
                };
                (value("name"), value("value"))
            });
        Self {
            path: path.to_owned(),
            fields: hidden.collect(),
            headers: vec![("x-user", person), ("sec-fetch-site", "same-origin")],
        }
    }

    /// The same form, sent to another place.
    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        let mut fields = self.fields.iter();
        let field = fields.find(|(its, _)| its == name);
        &field.expect("a field").1
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.fields.retain(|(its, _)| its != name);
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// One more field of this name.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: Option<&'static str>) -> Self {
        self.headers.retain(|(its, _)| *its != name);
        self.headers.extend(value.map(|value| (name, value)));
        self
    }

    pub(crate) async fn send(&self, app: &Router) -> Answer {
        let encoded = |text: &str| -> String {
            let encoded = |byte: u8| match byte.is_ascii_alphanumeric() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02x}"),
            };
            text.bytes().map(encoded).collect()
        };
        let fields = self.fields.iter();
        let fields: Vec<_> = fields
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect();
        self.send_as(app, "application/x-www-form-urlencoded", fields.join("&"))
            .await
    }

    pub(crate) async fn send_as(&self, app: &Router, kind: &str, body: String) -> Answer {
        let mut request = Request::post(&self.path).header("content-type", kind);
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).expect("a request");
        read(app.clone().oneshot(request).await.expect("an answer")).await
    }
}
