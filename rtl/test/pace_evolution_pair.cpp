// Runs pace_evolution_pair.sv: prints each gap in ticks, those of the first instance as `0 TICKS`, of the second as `1 TICKS`, and
// last how many clock cycles a gap took.
//
//   pace_evolution_pair GAPS TICKS [TICKS...]
//
// The unit is the first number of ticks long for one gap, the second for the next and so on, in turn. In the second half of the
// gaps s_axis_tvalid and m_axis_tready are low now and then, at other times in each instance, so that neither side may count on
// the other.

#include "Vpace_evolution_pair.h"
#include "verilated.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Instance {
    unsigned long requested = 0, answered = 0, half_time = 0, end_time = 0;
};

// Bits of a port wider than a word of the simulator's.
static void put(uint32_t *port, unsigned first, unsigned width, uint64_t value) {
    for (unsigned bit = 0; bit < width; ++bit) {
        const unsigned at = first + bit;
        const uint32_t mask = UINT32_C(1) << (at % 32);
        port[at / 32] = (value >> bit & 1) ? port[at / 32] | mask : port[at / 32] & ~mask;
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        std::fprintf(stderr, "usage: %s GAPS TICKS [TICKS...]\n", arguments[0]);
        return 2;
    }
    const unsigned long gaps = std::strtoul(arguments[1], nullptr, 10);
    std::vector<uint64_t> units;
    for (int index = 2; index < count; ++index) units.push_back(std::strtoull(arguments[index], nullptr, 10));

    Vpace_evolution_pair pair;
    unsigned long cycles = 0;
    auto settle = [&](int level) {
        pair.clk = level;
        pair.eval();
    };
    pair.rst = 1;
    settle(0);
    settle(1);
    pair.rst = 0;

    Instance instances[2];
    while (instances[0].answered < gaps || instances[1].answered < gaps) {
        pair.s_axis_tvalid = pair.m_axis_tready = 0;
        for (unsigned index = 0; index < 2; ++index) {
            const Instance &instance = instances[index];
            const bool wait = instance.answered > gaps / 2 && cycles % (5 + 2 * index) < 2;
            if (instance.requested < gaps && !wait) pair.s_axis_tvalid |= 1 << index;
            if (!wait) pair.m_axis_tready |= 1 << index;
            put(pair.s_axis_tdata.data(), 40 * index, 40, units[instance.requested % units.size()]);
        }
        settle(0);
        const unsigned inputs = pair.s_axis_tvalid & pair.s_axis_tready, outputs = pair.m_axis_tvalid & pair.m_axis_tready;
        ++cycles;
        for (unsigned index = 0; index < 2; ++index) {
            Instance &instance = instances[index];
            if (outputs >> index & 1) {
                const uint64_t ticks = pair.m_axis_tdata[2 * index] | uint64_t(pair.m_axis_tdata[2 * index + 1]) << 32;
                std::printf("%u %llu\n", index, static_cast<unsigned long long>(ticks));
                ++instance.answered;
                if (instance.answered == gaps / 2) instance.half_time = cycles;
                if (instance.answered == gaps) instance.end_time = cycles;
            }
            instance.requested += inputs >> index & 1;
        }
        settle(1);
        if (cycles > 100 * gaps + 1000) {
            std::fprintf(stderr, "no progress after %lu and %lu gaps\n", instances[0].answered, instances[1].answered);
            return 1;
        }
    }
    for (const Instance &instance : instances) {
        const double half = gaps / 2.0;
        std::fprintf(stderr, "%.2f cycles per gap, %.2f with waits; ", instance.half_time / half, (instance.end_time - instance.half_time) / half);
    }
    std::fprintf(stderr, "\n");
    pair.final();
    return 0;
}
