// Drives modules_top.sv with pseudo-random traffic.
//
//   modules streams          skid buffer, FIFO and arbiter: checks here that nothing is lost, repeated or reordered, fairness
//   modules flows            flow table against a map
//   modules calendar MIX START EXPIRIES SEED   prints what the calendar was told and did, for a comparison with the software's:
//                            `s ID DEADLINE RUNNING NOW` set, `c ID RUNNING` cancelled, `x ID DEADLINE NOW` expired;
//                            last `#` and the worst clocks of set, cancel and set again, and the clocks in all
//   modules load MIX PERCENT `x` in number, for figures: mean and worst clocks of a set, clocks an expiry
//
// What must not be ends it with status 1 and a line on stderr.

#include "Vmodules_top.h"
#include "verilated.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>

static Vmodules_top *top;
static uint64_t clocks = 0;
static uint64_t state = 88172645463325252ull;

static uint64_t draw() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1Dull >> 8;
}

static void demand(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "at clock %" PRIu64 ": %s\n", clocks, what);
    std::exit(1);
}

// Outputs of the inputs that were just set.
static void settle() {
    top->clk = 0;
    top->eval();
}

static void edge() {
    top->clk = 1;
    top->eval();
    ++clocks;
}

static void reset() {
    top->rst = 1;
    top->cmd_valid = top->req_valid = top->s_axis_tvalid = top->m_axis_tready = top->due_ready = 0;
    top->arbiter_request = top->arbiter_accept = 0;
    for (int clock = 0; clock < 3; ++clock) settle(), edge();
    top->rst = 0;
}

// ---- streams: each pattern of pauses on each side, in transfers of each number
static bool pattern(int kind, uint64_t clock) {
    switch (kind) {
    case 0: return true;
    case 1: return clock % 2 == 0;
    case 2: return clock % 4 == 3;
    case 3: return clock % 16 < 8;
    case 4: return clock % 40 >= 30;
    default: return draw() % 3 != 0;
    }
}

static void streams() {
    unsigned long runs = 0, full = 0;
    for (int idle = 0; idle < 6; ++idle)
        for (int pressure = 0; pressure < 6; ++pressure)
            for (int size : {1, 2, 3, 5, 15, 16, 17, 18, 19, 20, 64, 127, 512, 1500}) {
                reset();
                std::deque<uint32_t> sent[2];
                int in[2] = {0, 0}, out[2] = {0, 0};
                uint32_t held[2] = {0, 0};
                bool holds[2] = {false, false};
                uint32_t data[2] = {uint32_t(draw()), uint32_t(draw())};
                bool offers[2] = {false, false};
                const uint64_t begin = clocks;
                while (out[0] < size || out[1] < size) {
                    demand(clocks - begin < uint64_t(size) * 60 + 200, "a stream stands still");
                    top->s_axis_tvalid = top->m_axis_tready = 0;
                    for (int which = 0; which < 2; ++which) {
                        // What was offered stays.
                        if (!offers[which]) offers[which] = in[which] < size && pattern(idle, clocks);
                        if (offers[which]) top->s_axis_tvalid |= 1 << which;
                        if (pattern(pressure, clocks)) top->m_axis_tready |= 1 << which;
                    }
                    top->s_axis_tdata = uint64_t(data[1]) << 32 | data[0];
                    settle();
                    for (int which = 0; which < 2; ++which) {
                        const uint32_t word = uint32_t(top->m_axis_tdata >> (32 * which));
                        const bool valid = top->m_axis_tvalid >> which & 1;
                        if (holds[which]) demand(valid && word == held[which], "a transfer was withdrawn or changed");
                        holds[which] = valid && !(top->m_axis_tready >> which & 1);
                        held[which] = word;
                        if (valid) {
                            demand(!sent[which].empty() && sent[which].front() == word, "a wrong transfer");
                            if (!holds[which]) sent[which].pop_front(), ++out[which];
                        }
                        if (offers[which] && (top->s_axis_tready >> which & 1)) {
                            sent[which].push_back(data[which]);
                            data[which] = uint32_t(draw());
                            offers[which] = false;
                            ++in[which];
                        } else if (offers[which]) {
                            ++full;
                        }
                    }
                    edge();
                    settle();
                    demand(top->fifo_count == sent[1].size(), "the FIFO's count is wrong");
                }
                // With neither pauses nor pressure, one transfer a clock.
                if (idle == 0 && pressure == 0) demand(clocks - begin <= uint64_t(size) + 4, "less than one transfer a clock");
                ++runs;
            }
    demand(full > 1000, "back-pressure did not reach the input");
    reset();
    int waits[5] = {0, 0, 0, 0, 0}, worst = 0;
    unsigned previous = 0, requests = 0;
    for (int clock = 0; clock < 200000; ++clock) {
        // A request stays until it is granted.
        requests |= unsigned(draw() & draw()) & 31;
        if (clock > 100000) requests = 31;
        top->arbiter_request = requests;
        top->arbiter_accept = draw() % 2;
        settle();
        const unsigned grant = top->arbiter_grant;
        demand((grant & (grant - 1)) == 0 && (grant & ~requests) == 0, "a grant to none or several");
        demand((grant != 0) == (requests != 0), "requests and no grant");
        if (previous) demand(grant == previous, "a grant was withdrawn");
        previous = top->arbiter_accept ? 0 : grant;
        if (top->arbiter_accept && grant) {
            for (int each = 0; each < 5; ++each) {
                if (grant >> each & 1) waits[each] = 0;
                else if (requests >> each & 1) worst = std::max(worst, ++waits[each]);
            }
            requests &= ~grant;
        }
        edge();
    }
    demand(worst == 4, "a request waits for more, or never as many, grants than all others");
    std::printf("streams: %lu runs, arbiter: at most %d grants to others\n", runs, worst);
}

// ---- flow table
using Key = std::array<uint32_t, 10>;

static void flows() {
    reset();
    for (int word = 0; word < 11; ++word) top->hash_key[word] = uint32_t(draw());
    while (settle(), !top->table_ready) edge();
    std::map<Key, unsigned> model;
    unsigned long counts[6] = {0, 0, 0, 0, 0, 0}, used_stash = 0, returned = 0;
    uint64_t worst = 0;
    unsigned most = 0;
    for (int round = 0; round < 120000; ++round) {
        Key key{};
        // Few keys for hits; all its entries filled, then emptied, in turn.
        const unsigned number = unsigned(draw() % (round / 20000 % 2 ? 2000 : 280));
        for (int word = 0; word < 10; ++word) key[word] = number * 2654435761u * (word + 1) ^ (word == 9 ? number : 0);
        const int operation = int(draw() % 3);
        const unsigned value = unsigned(draw() % 4096);
        for (unsigned pauses = draw() % 12; pauses > 0; --pauses) {
            const unsigned before = top->stashed;
            settle(), edge(), settle();
            returned += top->stashed < before;
        }
        top->req_valid = 1;
        top->req_operation = operation;
        top->req_value = value;
        std::memcpy(top->req_key.data(), key.data(), sizeof key);
        const uint64_t begin = clocks;
        while (settle(), !top->req_ready) edge();
        edge();
        top->req_valid = 0;
        while (settle(), !top->result_valid) {
            demand(clocks - begin < 20, "no result");
            edge();
        }
        worst = std::max(worst, clocks - begin);
        const auto found = model.find(key);
        demand(top->result_hit == (found != model.end()), "a key was lost, or one appeared");
        if (found != model.end()) demand(top->result_value == found->second, "a wrong value");
        demand(!top->result_refused || (operation == 1 && found == model.end() && top->stashed == 4), "a refusal without need");
        if (operation == 1 && found == model.end() && !top->result_refused) model[key] = value;
        if (operation == 2 && found != model.end()) model.erase(found);
        counts[operation * 2 + (found != model.end())]++;
        used_stash += top->stashed > 0;
        counts[5] += top->result_refused;
        most = std::max<unsigned>(most, unsigned(model.size()));
    }
    demand(worst <= 7, "an operation takes more than seven clocks");
    demand(used_stash > 1000 && returned > 100 && counts[5] > 100, "the stash was hardly used");
    std::printf("flow table: at most %u of 260 entries, %lu returns from the stash, worst %" PRIu64 " clocks\n", most, returned, worst);
}

// ---- calendar
static constexpr unsigned IDS = 4096;

struct Calendar {
    uint64_t begin = 0;                 // the clock in which the command was offered
    uint64_t worst[3] = {0, 0, 0};      // cancel, set, set of one that runs
    uint64_t sum = 0, sets = 0;
    unsigned long expired = 0;
    bool print = true, shown = false, offered = false, was_running = false;
    unsigned running = 0;
    unsigned again = IDS;               // the timer that was cancelled last

    void offer(bool set, unsigned id, uint64_t deadline) {
        top->cmd_valid = 1;
        top->cmd_set = set;
        top->cmd_id = id;
        top->cmd_deadline = deadline;
        begin = clocks;
        offered = true;
    }

    // A clock; true if the command was taken in it.
    bool clock(bool due_ready) {
        top->due_ready = due_ready;
        settle();
        if (top->due_valid && !shown) {
            if (print) std::printf("x %u %" PRIu64 " %" PRIu64 "\n", unsigned(top->due_id), uint64_t(top->due_deadline), uint64_t(top->now));
            demand(top->due_deadline <= top->now, "early");
            ++expired;
            --running;
        }
        shown = top->due_valid && !due_ready;
        const bool taken = offered && top->cmd_ready;
        if (taken) {
            const uint64_t took = clocks + 1 - begin;
            was_running = top->cmd_running;
            if (top->cmd_set) {
                if (print)
                    std::printf("s %u %" PRIu64 " %d %" PRIu64 "\n", unsigned(top->cmd_id), uint64_t(top->cmd_deadline), int(was_running),
                                uint64_t(top->now));
                worst[was_running ? 2 : 1] = std::max(worst[was_running ? 2 : 1], took);
                sum += took, ++sets;
                running += !was_running;
            } else {
                if (print) std::printf("c %u %d\n", unsigned(top->cmd_id), int(was_running));
                worst[0] = std::max(worst[0], took);
                running -= was_running;
            }
            again = top->cmd_set ? IDS : unsigned(top->cmd_id);
            demand(took <= (top->cmd_set && was_running ? 6 : 4), "a command takes too long");
        }
        edge();
        if (taken) offered = false, top->cmd_valid = 0;
        return taken;
    }
};

// The delay of a timer in nanoseconds, as its mix says.
static uint64_t mixed_delay(const std::string &mix, uint64_t now, uint64_t start) {
    const uint64_t random = draw();
    if (mix == "equal") return ((now - start) / 20000 + 1) * 20000 - (now - start);
    if (mix == "near") return random % 100000;
    if (mix == "far") return random % (uint64_t(1) << (1 + draw() % 44));
    if (mix == "uniform") return random % 1000000000;
    if (mix == "mixed") {
        static const char *all[] = {"equal", "near", "far", "1", "4096", "65536"};
        return mixed_delay(all[draw() % 6], now, start);
    }
    // A stride: all at multiples of it.
    const uint64_t stride = std::strtoull(mix.c_str(), nullptr, 10);
    const uint64_t at = now + random % (stride * 8192);
    return at - at % stride > now ? at - at % stride - now : 0;
}

// Deadlines that pass before the command is taken count as the instant of the last expiry: only in the mix `late`.
static uint64_t delay(const std::string &mix, uint64_t now, uint64_t start) {
    if (mix == "late") return draw() % 40;
    const uint64_t chosen = mixed_delay(mix, now, start);
    return chosen < 100 ? chosen + (mix == "equal" ? 20000 : mix.find_first_not_of("0123456789") == std::string::npos ? 65536 : 100) : chosen;
}

static void calendar(const std::string &mix, uint64_t start, unsigned long expiries) {
    reset();
    top->now = start;
    while (settle(), !top->calendar_ready) edge();
    Calendar run;
    unsigned long full = 0, jumps = 0, phase = 0;
    unsigned next_id = 0;
    bool fill = true;
    bool saturate = false, stop = false;
    while (run.expired < expiries) {
        // Now and then the output waits, is slow, or commands come without a pause.
        if (phase-- == 0) {
            phase = draw() % 3000;
            saturate = draw() % 2;
            stop = draw() % 4 == 0;
        }
        if (!run.offered) {
            const unsigned kind = unsigned(draw() % 16);
            if (run.running == 0 || (!fill && draw() % 20000 == 0)) fill = true;
            if (fill) stop = true;
            if (fill) {
                // All timers, so that sets and cancels happen at 100 % too.
                run.offer(true, next_id, top->now + delay(mix, top->now, start));
                next_id = (next_id + 1) % IDS;
                if (run.running >= IDS - 1) fill = false, phase = 2000, saturate = true;
            } else if (saturate || kind < 4) {
                // What was cancelled is set again, so that all timers but one run while the output waits.
                const unsigned id = run.again < IDS ? run.again : unsigned(draw() % IDS);
                if (run.again == IDS && draw() % 8 < 2) run.offer(false, id, 0);
                else run.offer(true, id, top->now + delay(mix, top->now, start));
            }
        }
        full += run.running >= IDS - 4;
        run.clock(!stop && draw() % 8 != 0);
        settle();
        // Time goes on by 6 or 7 ns a clock, or jumps to what comes next.
        uint64_t now = top->now + 6 + clocks % 5 / 3;
        if (!run.offered && top->next_known && top->next_any && top->next_deadline > now && draw() % 3 == 0) {
            now = top->next_deadline;
            ++jumps;
        }
        top->now = now;
    }
    // What is left.
    stop = false;
    while (true) {
        if (!run.offered && top->next_known && !top->due_valid) {
            if (!top->next_any) break;
            top->now = std::max(uint64_t(top->now), uint64_t(top->next_deadline));
        }
        run.clock(true);
        settle();
        demand(clocks < 400000000, "the end does not come");
    }
    demand(run.running == 0, "timers were lost");
    demand(full > 1000, "it was hardly ever full");
    std::printf("# cancel %" PRIu64 " set %" PRIu64 " again %" PRIu64 " clocks %" PRIu64 " full %lu jumps %lu\n", run.worst[0], run.worst[1],
                run.worst[2], clocks, full, jumps);
}

// A load of timers that are replaced as they expire, as in the paper's Figure 3: how long a set takes.
static void load(const std::string &mix, double percent) {
    reset();
    top->now = 0;
    while (settle(), !top->calendar_ready) edge();
    Calendar run;
    run.print = false;
    const unsigned timers = unsigned(IDS * percent / 100);
    for (unsigned id = 0; id < timers; ++id) {
        run.offer(true, id, top->now + 1 + delay(mix, top->now, 0));
        while (!run.clock(false)) {}
    }
    run.sum = run.sets = run.worst[1] = 0;
    const uint64_t begin = clocks;
    uint64_t waiting = 0;
    std::deque<unsigned> ids;
    while (run.expired < 100000) {
        if (!run.offered && !ids.empty()) {
            run.offer(true, ids.front(), top->now + 1 + delay(mix, top->now, 0));
            ids.pop_front();
        }
        top->due_ready = 1;
        settle();
        if (top->due_valid && !run.shown) ids.push_back(top->due_id);
        run.clock(true);
        settle();
        if (!run.offered && ids.empty() && top->next_known && top->next_any && top->next_deadline > top->now && !top->due_valid)
            top->now = uint64_t(top->next_deadline);
        else
            ++waiting;
    }
    std::printf("%s load %.2f: set mean %.3f worst %" PRIu64 " clocks, %.2f clocks an expiry\n", mix.c_str(), percent / 100,
                double(run.sum) / double(run.sets), run.worst[1], double(clocks - begin) / 100000.0);
}

int main(int count, char **arguments) {
    top = new Vmodules_top;
    const std::string what = count > 1 ? arguments[1] : "";
    if (what == "streams") streams();
    else if (what == "flows") flows();
    else if (what == "calendar" && count == 6) {
        for (int skip = std::atoi(arguments[5]); skip > 0; --skip) state = draw() * 2 + 1;
        calendar(arguments[2], std::strtoull(arguments[3], nullptr, 0), std::strtoul(arguments[4], nullptr, 10));
    }
    else if (what == "load" && count == 4) load(arguments[2], std::strtod(arguments[3], nullptr));
    else {
        std::fprintf(stderr, "usage: modules streams | flows | calendar MIX START EXPIRIES SEED | load MIX PERCENT\n");
        return 2;
    }
    return 0;
}
