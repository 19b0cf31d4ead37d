#[path = "../tests/common/mod.rs"]
mod common;
fn main() {
    println!("{}", weftwire_image::explain::explain(&common::sample(), weftwire_image::explain::Form::Text));
    std::fs::File::create("/tmp/g.svg")
        .map(|mut f| std::io::Write::write_all(&mut f, weftwire_image::graph::svg(&common::sample()).as_bytes()))
        .unwrap()
        .unwrap();
}
