#[path = "../../image/tests/common/mod.rs"]
mod common;
#[path = "../tests/transfer/mod.rs"]
mod transfer;
use weftwire_sim::report::*;
fn main() {
    let f = transfer::transfer(100);
    let c = connections(&transfer::observed(&f)).remove(0);
    let image = common::sample();
    print!(
        "{}",
        page(&Page { title: "Transfer through tiny_tcp", image: Some(&image), connection: &c, number: (1, 1) })
    );
}
