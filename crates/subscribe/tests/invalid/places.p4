@subscribe[after=nothing]
header a { @subscribe[] bit<8> x; }
@subscribe[after=udp, when=udp.destination_port == 100000]
header b { @subscribe[match=fuzzy] bit<8> x; }
@subscribe[after=udp, messages=x]
header c { bit<8> x; }
@subscribe[message=a]
header d { @subscribe[text="  "] bit<8> x; }
@subscribe[place=here]
header e { @subscribe[decimals=30] bit<8> x; @subscribe[] bit<72> y; @subscribe[] bit<136> z; }
@subscribe_counter[name=c]
header f { bit<8> x; }
@subscribe_action[name=fwd]
header g { bit<8> x; }
header ipv4 { @subscribe[] bit<32> destination; }
@pragma query_field(h.x)
@pragma query_field_exact(a.y, 8)
@pragma query_field_exact(a.x, 16)
