// Runs pace_evolution.sv: prints each gap in ticks, and last how many clocks a gap took.
//
//   pace_evolution_run GAPS TICKS [TICKS...]
//
// The unit is the first number of ticks long for one gap, the second for the next and so on, in turn. Requests and answers are
// held back now and then, so that neither side may count on the other.

#include "Vpace_evolution.h"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int count, char **arguments) {
    if (count < 3) {
        std::fprintf(stderr, "usage: %s GAPS TICKS [TICKS...]\n", arguments[0]);
        return 2;
    }
    const unsigned long gaps = std::strtoul(arguments[1], nullptr, 10);
    std::vector<uint64_t> units;
    for (int index = 2; index < count; ++index) units.push_back(std::strtoull(arguments[index], nullptr, 10));

    Vpace_evolution block;
    unsigned long clocks = 0;
    auto clock = [&] {
        block.clock = 0;
        block.eval();
        block.clock = 1;
        block.eval();
        ++clocks;
    };
    block.reset = 1;
    clock();
    block.reset = 0;

    unsigned long requested = 0, answered = 0, first_half = 0;
    while (answered < gaps) {
        // The first half of the gaps at full speed, the second with waits.
        const bool wait = answered > gaps / 2 && clocks % 5 < 2;
        block.request_valid = requested < gaps && !wait;
        block.answer_ready = !wait;
        block.ticks_per_unit = units[requested % units.size()];
        block.clock = 0;
        block.eval();
        const bool request = block.request_valid && block.request_ready;
        const bool answer = block.answer_valid && block.answer_ready;
        if (answer) std::printf("%llu\n", static_cast<unsigned long long>(block.answer_ticks));
        clock();
        requested += request;
        answered += answer;
        if (answered <= gaps / 2) first_half = clocks;
        if (clocks > 100 * gaps + 1000) {
            std::fprintf(stderr, "it stands still after %lu gaps\n", answered);
            return 1;
        }
    }
    std::fprintf(stderr, "%.2f clocks a gap, %.2f with waits\n", first_half / (gaps / 2.0), (clocks - first_half) / (gaps / 2.0));
    block.final();
    return 0;
}
