//! Unary methods of gRPC behind the layer, with the server and the client of tonic.

mod harness;

mod interceptors;
mod responses;
mod streaming;
mod unary;
