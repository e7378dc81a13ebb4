//! Opens the operators' page in a real browser: the browser, the checks that every page passes,
//! and stores with something of everything. The tests and the program `screenshots` use it.

mod browser;
mod checks;
mod driver;
mod post;
mod records;
mod site;

pub use self::{
    browser::{Browser, scenario},
    checks::AXE,
    post::Post,
    records::{Failed, Records, in_doubt, trip, uncertain},
    site::{Site, everything, nobody, page_of},
};
