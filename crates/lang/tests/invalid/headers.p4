header sample_t { bit<16> sequence; bit<8> kind; bit<8> rest; }
