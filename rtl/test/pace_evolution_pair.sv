// Two instances of pace_evolution in one design, each with a table of its own: those of the folders first and second, with which the
// include path and the simulator's working directory begin. Their ports are side by side, the first instance's in the lower bits.

`default_nettype none

module pace_evolution_pair (
    input  wire          clk,
    input  wire          rst,

    input  wire  [79:0]   s_axis_tdata,
    input  wire  [1:0]   s_axis_tvalid,
    output wire  [1:0]   s_axis_tready,

    output wire  [127:0] m_axis_tdata,
    output wire  [1:0]   m_axis_tvalid,
    input  wire  [1:0]   m_axis_tready
);
  pace_evolution #(
      .FOLDER("first"),
      `include "first/pace_parameters.svh"
  ) first (
      .clk,
      .rst,
      .s_axis_tdata (s_axis_tdata[39:0]),
      .s_axis_tvalid(s_axis_tvalid[0]),
      .s_axis_tready(s_axis_tready[0]),
      .m_axis_tdata (m_axis_tdata[63:0]),
      .m_axis_tvalid(m_axis_tvalid[0]),
      .m_axis_tready(m_axis_tready[0])
  );

  pace_evolution #(
      .FOLDER("second"),
      `include "second/pace_parameters.svh"
  ) second (
      .clk,
      .rst,
      .s_axis_tdata (s_axis_tdata[79:40]),
      .s_axis_tvalid(s_axis_tvalid[1]),
      .s_axis_tready(s_axis_tready[1]),
      .m_axis_tdata (m_axis_tdata[127:64]),
      .m_axis_tvalid(m_axis_tvalid[1]),
      .m_axis_tready(m_axis_tready[1])
  );
endmodule

`default_nettype wire
