// All stand-alone modules in one design, so that one simulator is built for their test (modules.cpp).

`default_nettype none

module modules_top (
    input  wire         clk,
    input  wire         rst,

    // 0 skid buffer, 1 FIFO of 16: bit 0 and bit 1, and 32 bits of data each
    input  wire  [63:0] s_axis_tdata,
    input  wire  [1:0]  s_axis_tvalid,
    output wire  [1:0]  s_axis_tready,
    output wire  [63:0] m_axis_tdata,
    output wire  [1:0]  m_axis_tvalid,
    input  wire  [1:0]  m_axis_tready,
    output wire  [5:0]  fifo_count,

    input  wire  [4:0]  arbiter_request,
    input  wire         arbiter_accept,
    output wire  [4:0]  arbiter_grant,

    output wire         calendar_ready,
    input  wire  [63:0] now,
    input  wire         cmd_valid,
    output wire         cmd_ready,
    input  wire         cmd_set,
    input  wire  [11:0] cmd_id,
    input  wire  [63:0] cmd_deadline,
    output wire         cmd_running,
    output wire         due_valid,
    input  wire         due_ready,
    output wire  [11:0] due_id,
    output wire  [63:0] due_deadline,
    output wire         next_known,
    output wire         next_any,
    output wire  [63:0] next_deadline,

    output wire         table_ready,
    input  wire  [342:0] hash_key,
    input  wire         req_valid,
    output wire         req_ready,
    input  wire  [1:0]  req_operation,
    input  wire  [319:0] req_key,
    input  wire  [11:0] req_value,
    output wire         result_valid,
    output wire         result_hit,
    output wire         result_refused,
    output wire  [11:0] result_value,
    output wire  [2:0]  stashed
);
  skid_buffer #(.WIDTH(32)) buffer (
      .clk(clk), .rst(rst),
      .s_axis_tdata(s_axis_tdata[31:0]), .s_axis_tvalid(s_axis_tvalid[0]), .s_axis_tready(s_axis_tready[0]),
      .m_axis_tdata(m_axis_tdata[31:0]), .m_axis_tvalid(m_axis_tvalid[0]), .m_axis_tready(m_axis_tready[0]));

  fifo #(.WIDTH(32), .DEPTH_BITS(4)) queue (
      .clk(clk), .rst(rst),
      .s_axis_tdata(s_axis_tdata[63:32]), .s_axis_tvalid(s_axis_tvalid[1]), .s_axis_tready(s_axis_tready[1]),
      .m_axis_tdata(m_axis_tdata[63:32]), .m_axis_tvalid(m_axis_tvalid[1]), .m_axis_tready(m_axis_tready[1]),
      .count(fifo_count));

  arbiter #(.REQUESTS(5)) choose (
      .clk(clk), .rst(rst), .request(arbiter_request), .accept(arbiter_accept), .grant(arbiter_grant));

  calendar #(.ID_BITS(12)) timers (
      .clk(clk), .rst(rst), .ready(calendar_ready), .now(now),
      .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_set(cmd_set), .cmd_id(cmd_id), .cmd_deadline(cmd_deadline),
      .cmd_running(cmd_running),
      .m_axis_tvalid(due_valid), .m_axis_tready(due_ready), .m_axis_id(due_id), .m_axis_deadline(due_deadline),
      .next_known(next_known), .next_any(next_any), .next_deadline(next_deadline));

  // Small, so that the stash is used and overflows: 4 x 64 rows of 1.
  flow_table #(.KEY_BITS(320), .VALUE_BITS(12), .TABLES(4), .ROW_BITS(6), .WAYS(1), .STASH(4)) flows (
      .clk(clk), .rst(rst), .ready(table_ready), .hash_key(hash_key),
      .req_valid(req_valid), .req_ready(req_ready), .req_operation(req_operation), .req_key(req_key), .req_value(req_value),
      .result_valid(result_valid), .result_hit(result_hit), .result_refused(result_refused), .result_value(result_value),
      .stashed(stashed));
endmodule

`default_nettype wire
