use weftwire_lang::*;
struct L;
impl Loader for L {
    fn load(&self, name: &str, from: Option<&str>) -> Result<String, String> {
        #[allow(clippy::disallowed_methods)]
        std::fs::read_to_string(self.resolve(name, from)).map_err(|e| e.to_string())
    }
    fn resolve(&self, name: &str, from: Option<&str>) -> String {
        match from.and_then(|f| f.rsplit_once('/')) {
            Some((d, _)) if !name.starts_with('/') => format!("{d}/{name}"),
            _ => name.to_string(),
        }
    }
}
fn main() {
    for f in std::env::args().skip(1) {
        let d = Dialect::of_file_name(&f).unwrap();
        let c = compile(&f, d, &L);
        for x in &c.diagnostics {
            println!("{}", x.to_text(&c.sources));
        }
        if let Some(i) = c.image {
            println!(
                "{f}: regs {} scratch {} conds {} rows {} maxops {} prep {} internal {} states {}",
                i.registers.len(),
                i.registers.iter().filter(|r| r.scratch).count(),
                i.conditions.len(),
                i.rows.len(),
                i.rows.iter().map(|r| r.operations.len()).max().unwrap_or(0),
                i.preparations.len(),
                i.internal_events,
                i.states.len()
            );
            match i.clone().verify() {
                Ok(_) => println!("verified"),
                Err(e) => println!("{e}"),
            }
            if std::env::var("DUMP").is_ok() {
                for (n, r) in i.rows.iter().enumerate() {
                    println!("{n} {r:?}");
                }
            }
        }
    }
}
