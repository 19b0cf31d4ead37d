// The engine for one port: parser, rules of one lane, sender.
//
// Function: runs the image that was written over the register bus for every frame of `s_axis`; frames that it sends leave by
// `m_axis`, what it tells the application by `m_axis_host`.
// Latency and throughput: those of `packet_parser`, `rule_engine` and `packet_sender`, one event at a time.
// Interface: `reg_wr_*` writes a word each clock, only while `busy` is low. `now` is the time in nanoseconds and never goes back; a frame
// has the time of its last beat. `dropped` is high for a clock when a frame makes no event, `dispatched` when a lane begins one.
module weft_core
    import weft_pkg::*;
#(
    parameter int FLOWS = BUILT_FLOWS,
    parameter int WORDS = 256
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [63:0] now,
    input  logic        reg_wr_en,
    input  logic [15:0] reg_wr_addr,
    input  logic [63:0] reg_wr_data,
    input  logic [63:0] s_axis_tdata,
    input  logic [7:0]  s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,
    output logic [63:0] m_axis_tdata,
    output logic [7:0]  m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic [63:0] m_axis_host_tdata,
    output logic [15:0] m_axis_host_tid,
    output logic [7:0]  m_axis_host_tuser,
    output logic        m_axis_host_tvalid,
    input  logic        m_axis_host_tready,
    output logic        m_axis_host_tlast,
    output logic        busy,
    output logic        dropped,
    output logic        dispatched,
    output logic        send_command
);
    logic event_valid, event_done, frame_valid, frame_ready;
    logic [511:0] header, frame;
    logic [15:0] frame_length, datagram_end;
    logic [63:0] event_time, read_data;
    logic [$clog2(WORDS)-1:0] read_word;
    logic [6:0] frame_bytes;

    assign busy = !s_axis_tready || !frame_ready;
    assign send_command = frame_valid && frame_ready;

    packet_parser #(.WORDS(WORDS)) parser (
        .clk, .rst, .now, .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast, .s_axis_tuser,
        .event_valid, .event_done, .header, .frame_length, .datagram_end, .time_of_frame(event_time), .read_word,
        .read_data, .dropped
    );

    rule_engine #(.FLOWS(FLOWS), .WORDS(WORDS)) lane (
        .clk, .rst, .write_valid(reg_wr_en), .write_address(reg_wr_addr), .write_data(reg_wr_data), .event_valid,
        .event_done, .header, .frame_length, .datagram_end, .event_time, .read_word, .read_data, .frame_valid,
        .frame_ready, .frame, .frame_bytes, .m_axis_host_tdata, .m_axis_host_tid, .m_axis_host_tuser,
        .m_axis_host_tvalid, .m_axis_host_tready, .m_axis_host_tlast, .dispatched
    );

    packet_sender sender (
        .clk, .rst, .frame_valid, .frame_ready, .frame, .frame_length(frame_bytes), .m_axis_tdata, .m_axis_tkeep,
        .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
    );
endmodule
