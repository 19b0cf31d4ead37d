// A skid buffer: cuts the combinational paths of an AXI-Stream in both directions.
//
// Function: transfers of s_axis come out on m_axis, all, once, in order. All outputs are registers.
// Latency: one clock. Throughput: one transfer a clock, also when m_axis_tready changes every clock.

`default_nettype none

module skid_buffer #(
    parameter int WIDTH = 64
) (
    input  wire              clk,
    input  wire              rst,            // synchronous

    input  wire  [WIDTH-1:0] s_axis_tdata,
    input  wire              s_axis_tvalid,
    output logic             s_axis_tready,

    output logic [WIDTH-1:0] m_axis_tdata,
    output logic             m_axis_tvalid,
    input  wire              m_axis_tready
);
  logic [WIDTH-1:0] skid;
  logic skid_valid;

  assign s_axis_tready = !skid_valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      skid_valid <= 1'b0;
    end else if (m_axis_tready || !m_axis_tvalid) begin
      m_axis_tvalid <= skid_valid || s_axis_tvalid;
      skid_valid <= 1'b0;
    end else if (s_axis_tvalid && s_axis_tready) begin
`ifndef BUG_SKID_LOST
      skid_valid <= 1'b1;
`endif
    end
    if (m_axis_tready || !m_axis_tvalid) begin
`ifdef BUG_SKID_ORDER
      m_axis_tdata <= s_axis_tvalid ? s_axis_tdata : skid;
`else
      m_axis_tdata <= skid_valid ? skid : s_axis_tdata;
`endif
    end
    if (s_axis_tready) skid <= s_axis_tdata;
  end
endmodule

`default_nettype wire
