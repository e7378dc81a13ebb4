//! The checklist as a page.
