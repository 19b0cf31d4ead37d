//! Numbers that driver and hardware share: opcodes, kinds of operands, tables of the register bus, sizes.
//!
//! They stand here only; `rtl/weft_pkg.sv` is made from them, and a test compares.

/// Defines constants, and the lines of the package that say the same.
macro_rules! constants {
    ($list:ident, $kind:ty, $verilog:literal; $($name:ident = $value:literal),+ $(,)?) => {
        $(#[doc = concat!("`", stringify!($name), "` of the package.")] pub const $name: $kind = $value;)+
        const $list: &[(&str, u64, &str)] = &[$((stringify!($name), $value as u64, $verilog)),+];
    };
}

constants! { SIZES, u16, "int";
    BUILT_FLOWS = 1024, BUILT_WORDS = 1024, BUILT_STATES = 16, BUILT_REGISTERS = 16, BUILT_FIELDS = 32,
    BUILT_TEMPLATES = 4, CODE_BITS = 10, STATE_BITS = 4, REGISTER_BITS = 4, FIELD_BITS = 5, TEMPLATE_BITS = 2,
}
constants! { OPCODES, u8, "logic [7:0]";
    OPCODE_END = 0, OPCODE_COMPUTE = 1, OPCODE_CONDITION = 2, OPCODE_ROW = 3, OPCODE_SET_FIELD = 4, OPCODE_BUILD = 5,
    OPCODE_SEND = 6, OPCODE_DELIVER = 7, OPCODE_NOTIFY = 8,
}
constants! { OPERATORS, u8, "logic [7:0]";
    ALU_ADD = 0, ALU_SUB = 1, ALU_MIN = 2, ALU_MAX = 3, ALU_MIN_UNSIGNED = 4, ALU_MAX_UNSIGNED = 5, ALU_SEQ_MIN = 6,
    ALU_SEQ_MAX = 7, ALU_SEQ_DISTANCE = 8, ALU_AND = 9, ALU_OR = 10, ALU_XOR = 11, ALU_SHL = 12, ALU_SHR = 13,
    ALU_SHR_SIGNED = 14, ALU_EQ = 16, ALU_NE = 17, ALU_LT = 18, ALU_LE = 19, ALU_GT = 20, ALU_GE = 21,
    ALU_LT_UNSIGNED = 22, ALU_LE_UNSIGNED = 23, ALU_GT_UNSIGNED = 24, ALU_GE_UNSIGNED = 25, ALU_SEQ_LT = 26,
    ALU_SEQ_LE = 27, ALU_SEQ_GT = 28, ALU_SEQ_GE = 29,
}
constants! { OPERANDS, u8, "logic [3:0]";
    OPERAND_REGISTER = 0, OPERAND_CONSTANT = 1, OPERAND_FIELD_CURRENT = 2, OPERAND_FIELD_WORK = 3,
    OPERAND_PRESENT_CURRENT = 4, OPERAND_PRESENT_WORK = 5, OPERAND_EVENT = 6, OPERAND_NOW = 7,
}
constants! { TABLES, u16, "logic [3:0]";
    TABLE_OPERATION = 0, TABLE_LEFT = 1, TABLE_RIGHT = 2, TABLE_ENTRY = 3, TABLE_INITIAL = 4, TABLE_MASK = 5,
    TABLE_FIELD = 6, TABLE_TEMPLATE = 7, TABLE_TEMPLATE_LENGTH = 8, TABLE_LIMITS = 9,
}
constants! { HOST, u8, "logic [7:0]"; HOST_NOTICE = 1, HOST_BYTE = 2 }

/// The text of `rtl/weft_pkg.sv`.
pub fn package() -> String {
    let mut text = String::from(
        "// Numbers that driver and hardware share. Made from `crates/rtl/src/layout.rs`; \
         `UPDATE=1 cargo test -p weftwire-rtl package` writes it.\n\
         /* verilator lint_off UNUSEDPARAM */\npackage weft_pkg;\n",
    );
    for (name, value, kind) in [SIZES, OPCODES, OPERATORS, OPERANDS, TABLES, HOST].concat() {
        let number = match kind {
            "int" => value.to_string(),
            "logic [3:0]" => format!("4'd{value}"),
            _ => format!("8'd{value}"),
        };
        text += &format!("    localparam {kind} {name} = {number};\n");
    }
    text + "endpackage\n"
}

#[cfg(test)]
mod tests {
    #[test]
    fn package_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rtl/weft_pkg.sv");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, super::package()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), super::package(), "run it with UPDATE=1");
    }
}
