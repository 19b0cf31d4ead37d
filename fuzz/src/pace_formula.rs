//! The body of the target `pace_formula`, apart from the others: only what may depend on the crate `pace` includes it.

use weftwire_pace::{EvolutionBlock, Form, Options, Setting, Solver, compile, parse};

/// Text of an envelope. What is read can be solved and compiled, or says why not; times never fall.
pub fn pace_formula(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let setting = Setting { round_trip: None, packet_size: Some(1500.0) };
    let envelope = match parse(&text, &setting) {
        Ok(envelope) => envelope,
        Err(fault) => {
            assert!(text.get(fault.span.clone()).is_some(), "a fault lies in the text");
            let _ = fault.to_text(&text);
            return;
        }
    };
    let mut solver = Solver::new(&envelope);
    for n in 1..20 {
        let Ok(time) = solver.time_of_packet(n) else { return };
        assert!(time.is_finite());
    }
    let options = Options { form: Form::Carried, entries: 16, packets: 32, ..Options::default() };
    if let Ok(evolution) = compile(&envelope, &text, &options) {
        evolution.check().expect("what was compiled can run");
        let mut machine = EvolutionBlock::new(&evolution, 1_000_000);
        for _ in 0..100 {
            machine.next_ticks();
        }
    }
}
