// FIFO of four: one symbolic transfer, of those that go in any, comes out when all those before it have, unchanged; counts are
// right; what is offered stays.

`default_nettype none

module fifo_proof (
    input wire       clk,
    input wire       rst,
    input wire [1:0] s_axis_tdata,
    input wire       s_axis_tvalid,
    input wire       m_axis_tready,
    input wire       pick
);
  wire s_axis_tready, m_axis_tvalid;
  wire [1:0] m_axis_tdata;
  wire [3:0] count;

  fifo #(.WIDTH(2), .DEPTH_BITS(2)) dut (
      .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
      .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .count(count));

  wire into = s_axis_tvalid && s_axis_tready;
  wire out = m_axis_tvalid && m_axis_tready;
  reg [3:0] inside;
  // A transfer is followed: how many inside come before it.
  reg followed = 1'b0;
  reg done = 1'b0;
  reg [3:0] before;
  reg [1:0] data;
  reg begun = 1'b0;
  always @(posedge clk) begin
    begun <= 1'b1;
    if (!begun) assume (rst);
    if (rst) begin
      inside <= 0;
      followed <= 1'b0;
      done <= 1'b0;
    end else begin
      inside <= inside + into - out;
      if (into && pick && !followed && !done) begin
        followed <= 1'b1;
        before <= inside - out;
        data <= s_axis_tdata;
      end else if (followed && out) begin
        if (before == 0) begin
          followed <= 1'b0;
          done <= 1'b1;
        end
        before <= before - 1'b1;
      end
    end
    if (begun && !rst) begin
      assert (inside <= 7);
      assert (count == inside);
      if (m_axis_tvalid) assert (inside != 0);
      if (followed) assert (before < inside);
      if (followed && before == 0 && m_axis_tvalid) assert (m_axis_tdata == data);
      if ($past(begun) && !$past(rst) && $past(m_axis_tvalid && !m_axis_tready)) begin
        assert (m_axis_tvalid);
        assert (m_axis_tdata == $past(m_axis_tdata));
      end
      cover (inside == 7);
      cover (done && inside == 0);
      cover (followed && before == 3);
    end
  end
endmodule
