@invariant_crc header marked_t { @variant bit<3> seen; bit<5> kind; @variant bit<8> more; bit<16> rest; }
header inner_t { bit<32> value; }
