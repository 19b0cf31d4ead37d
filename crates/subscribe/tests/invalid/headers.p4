// Mistakes of P4 itself come first; annotations are looked at when there are none.
@subscribe[after=nothing]
header f { bit<3> x; }
header g { mac_t x; }
