// A first-in, first-out queue of AXI-Stream transfers in a memory.
//
// Function: holds up to 2^DEPTH_BITS transfers, and two more in its output registers. count is what it holds in all.
// Latency: three clocks from s_axis to m_axis when empty. Throughput: one transfer a clock. All outputs are registers.

`default_nettype none

module fifo #(
    parameter int WIDTH = 64,
    parameter int DEPTH_BITS = 4
) (
    input  wire                   clk,
    input  wire                   rst,            // synchronous

    input  wire  [WIDTH-1:0]      s_axis_tdata,
    input  wire                   s_axis_tvalid,
    output wire                   s_axis_tready,

    output wire  [WIDTH-1:0]      m_axis_tdata,
    output wire                   m_axis_tvalid,
    input  wire                   m_axis_tready,

    output wire  [DEPTH_BITS+1:0] count
);
  // A bit more than the address, so that full and empty differ.
  logic [DEPTH_BITS:0] write_pointer, read_pointer;
  // The memory's output is valid.
  logic fetched;
  wire [WIDTH-1:0] fetched_data;
  wire skid_ready, skid_valid;

  wire [DEPTH_BITS:0] stored = write_pointer - read_pointer;
`ifdef BUG_FIFO_OVERFLOW
  assign s_axis_tready = 1'b1;
`else
  assign s_axis_tready = !stored[DEPTH_BITS];
`endif
  wire write = s_axis_tvalid && s_axis_tready;
  wire read = stored != 0 && (!fetched || skid_ready);

  ram #(
      .WIDTH(WIDTH),
      .ADDRESS_BITS(DEPTH_BITS)
  ) transfers (
      .clk(clk),
      .we(write),
      .waddr(write_pointer[DEPTH_BITS-1:0]),
      .wdata(s_axis_tdata),
      .re(read),
      .raddr(read_pointer[DEPTH_BITS-1:0]),
      .q(fetched_data)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      write_pointer <= 0;
      read_pointer <= 0;
      fetched <= 1'b0;
    end else begin
      if (write) write_pointer <= write_pointer + 1'b1;
      if (read) read_pointer <= read_pointer + 1'b1;
`ifdef BUG_FIFO_FETCHED
      fetched <= read;
`else
      fetched <= read || (fetched && !skid_ready);
`endif
    end
  end

  skid_buffer #(
      .WIDTH(WIDTH)
  ) output_register (
      .clk(clk),
      .rst(rst),
      .s_axis_tdata(fetched_data),
      .s_axis_tvalid(fetched),
      .s_axis_tready(skid_ready),
      .m_axis_tdata(m_axis_tdata),
      .m_axis_tvalid(skid_valid),
      .m_axis_tready(m_axis_tready)
  );
  assign m_axis_tvalid = skid_valid;

  assign count = {1'b0, stored} + {{(DEPTH_BITS + 1) {1'b0}}, fetched} + {{(DEPTH_BITS + 1) {1'b0}}, skid_valid}
      + {{(DEPTH_BITS + 1) {1'b0}}, !skid_ready};
endmodule

`default_nettype wire
