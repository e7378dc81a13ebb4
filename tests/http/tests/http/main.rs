//! The HTTP front end, as its clients meet it: the items of its checklist, each by the number that it has there.

mod harness;

mod conformance;

mod replay;
