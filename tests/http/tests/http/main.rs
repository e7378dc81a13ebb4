//! The HTTP front end, as its clients meet it: the items of its checklist, each by the number that
//! it has there.

mod harness;
mod said;

mod conformance;
mod items;
mod sources;

mod applicability;
mod bodies;
mod callers;
mod changes;
mod clients;
mod clocks;
mod compression;
mod contracts;
mod crowds;
mod environment;
mod expiry;
mod failures;
mod fallbacks;
mod handlers;
mod header_fields;
mod identity;
mod killed;
mod kinds;
mod messages;
mod own_problems;
mod panics;
mod protocols;
mod rate_limits;
mod readme;
mod rejections;
mod replay;
mod routes;
mod seals;
mod settle;
mod shutdown;
mod statuses;
mod steps;
mod stores;
mod syntax;
mod told;
mod tower_http;
mod traces;
mod transactions;
mod unread;
mod unrepeatable;
mod uploads;
mod webhooks;
mod wording;
