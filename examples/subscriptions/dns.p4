// Queries of the domain name system over UDP (RFC 1035). Names of up to 38 characters can be told apart; longer ones
// match nothing.

@subscribe[after=udp, when=udp.destination_port == 53]
@subscribe_action[name=answerDNS, arguments="ipv4"]
header dns {
    bit<16>  id;
    bit<16>  flags;
    bit<16>  questions;
    bit<16>  answers;
    bit<16>  authorities;
    bit<16>  additionals;
    @subscribe[names=dns] bit<320> name;
}
