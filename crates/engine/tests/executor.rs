//! What an executor outside of the crate may say: what it lacks.

use weftwire_core::Ports;
use weftwire_engine::executor::{Executor, Program, Run};
use weftwire_engine::{EngineError, EngineOptions, Runtime};
use weftwire_image::{Event, Feature, Image};

/// An executor without notices and dice.
#[derive(Debug)]
struct Poor;

impl Executor for Poor {
    const NAME: &'static str = "poor";
    const LACKS: &'static [Feature] = &[Feature::Random, Feature::Notices, Feature::Hash];

    fn load(_program: &Program) -> Result<Poor, EngineError> {
        Ok(Poor)
    }

    fn run_row(&self, _run: &mut Run<'_>, _event: Event) -> Option<usize> {
        None
    }
}

#[test]
fn an_image_is_refused_by_the_names_of_what_is_lacking() {
    let document = include_bytes!("../../../fuzz/corpus/image_load/small");
    let image: Image = serde_json::from_slice(document).expect("it is an image");
    let image = image.verify().expect("a good image");
    let refused = Runtime::<Poor>::new(image, Ports::default(), EngineOptions::default()).map(|_| ());
    let refused = refused.expect_err("it notifies");
    assert_eq!(refused, EngineError::Lacks { engine: "poor", features: vec![Feature::Notices] });
    assert_eq!(refused.to_string(), "the engine `poor` lacks what the image uses: `notices`");
}
