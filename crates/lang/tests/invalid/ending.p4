@invariant_crc header marked_t { @variant bit<8> seen; bit<24> rest; }
@invariant_crc header wide_t { @variant bit<128> seen; bit<8> rest; }
