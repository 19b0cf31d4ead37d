// Runs the model of weft_core for a driver that writes lines to standard input and reads lines from standard output.
//
//   w ADDRESS DATA   writes a word over the register bus (hexadecimal)
//   f TIME BYTES     a frame whose last byte arrives at TIME (hexadecimal)
//
// A frame is answered by lines `s BYTES` (sent), `d BYTES` (delivered), `n NUMBER VALUE` (notice), and at last
// `e DROPPED CLOCKS LAST-IN DISPATCH SEND FIRST-OUT`: clocks from reset on, 0 for what did not happen.
// Any argument makes all streams pause at random, by that seed. A frame that is not done after a million clocks is answered by `hangs`, which is the end.
#include "Vweft_core.h"
#include "verilated.h"
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

Vweft_core *core;
uint64_t cycle = 0;

void edge() {
    core->clk = 1;
    core->eval();
    core->clk = 0;
    core->eval();
    cycle++;
}

void print_bytes(char kind, const std::vector<uint8_t> &bytes) {
    std::printf("%c ", kind);
    for (uint8_t byte : bytes) std::printf("%02x", byte);
    std::printf("\n");
}

} // namespace

int main(int count, char **arguments) {
    Verilated::randReset(2);
    core = new Vweft_core;
    bool pauses = count > 1;
    std::mt19937 random(pauses ? std::stoul(arguments[1]) : 0);
    core->clk = 0;
    core->rst = 1;
    core->reg_wr_en = 0;
    core->s_axis_tvalid = 0;
    core->s_axis_tuser = 0;
    core->m_axis_tready = 1;
    core->m_axis_host_tready = 1;
    for (int i = 0; i < 4; i++) edge();
    core->rst = 0;
    edge();
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string what;
        words >> what;
        if (what == "w") {
            uint64_t address = 0, data = 0;
            words >> std::hex >> address >> data;
            core->reg_wr_en = 1;
            core->reg_wr_addr = address;
            core->reg_wr_data = data;
            edge();
            core->reg_wr_en = 0;
        } else if (what == "f") {
            uint64_t time = 0;
            std::string digits;
            words >> std::hex >> time >> digits;
            std::vector<uint8_t> frame, sent, delivered;
            for (size_t i = 0; i + 1 < digits.size(); i += 2) frame.push_back(std::stoi(digits.substr(i, 2), nullptr, 16));
            core->now = time;
            size_t place = 0;
            uint64_t last_in = 0, dispatch = 0, send = 0, first_out = 0, begin = cycle;
            bool dropped = false, offered = false, done = false;
            while (!done) {
                if (cycle - begin == 1000000) {
                    std::printf("hangs\n");
                    return 1;
                }
                offered = place < frame.size() && (offered || !pauses || random() % 3 != 0);
                core->s_axis_tvalid = offered;
                core->s_axis_tdata = 0;
                core->s_axis_tkeep = 0;
                if (offered) {
                    for (size_t i = 0; i < 8 && place + i < frame.size(); i++) {
                        core->s_axis_tdata |= uint64_t(frame[place + i]) << (8 * i);
                        core->s_axis_tkeep |= 1 << i;
                    }
                }
                core->s_axis_tlast = offered && place + 8 >= frame.size();
                core->m_axis_tready = !pauses || random() % 2 != 0;
                core->m_axis_host_tready = !pauses || random() % 2 != 0;
                core->eval();
                if (core->m_axis_tvalid && core->m_axis_tready) {
                    if (sent.empty() && first_out == 0) first_out = cycle;
                    for (int i = 0; i < 8; i++)
                        if (core->m_axis_tkeep >> i & 1) sent.push_back(core->m_axis_tdata >> (8 * i));
                    if (core->m_axis_tlast) {
                        print_bytes('s', sent);
                        sent.clear();
                    }
                }
                if (core->m_axis_host_tvalid && core->m_axis_host_tready) {
                    if (core->m_axis_host_tuser == 1) {
                        std::printf("n %x %llx\n", unsigned(core->m_axis_host_tid), (unsigned long long)core->m_axis_host_tdata);
                    } else {
                        delivered.push_back(core->m_axis_host_tdata);
                        if (core->m_axis_host_tlast) {
                            print_bytes('d', delivered);
                            delivered.clear();
                        }
                    }
                }
                if (core->dispatched && dispatch == 0) dispatch = cycle;
                if (core->send_command && send == 0) send = cycle;
                if (core->dropped) dropped = true;
                if (place >= frame.size() && !core->busy) {
                    // `dropped` is registered: it is there in the clock in which the parser is free again.
                    done = true;
                    continue;
                }
                bool taken = offered && core->s_axis_tready;
                if (taken && place + 8 >= frame.size()) last_in = cycle;
                edge();
                if (taken) {
                    place += 8;
                    offered = false;
                }
            }
            core->s_axis_tvalid = 0;
            std::printf("e %d %llx %llx %llx %llx %llx\n", dropped, (unsigned long long)cycle, (unsigned long long)last_in,
                        (unsigned long long)dispatch, (unsigned long long)send, (unsigned long long)first_out);
            std::fflush(stdout);
        }
    }
    delete core;
    return 0;
}
