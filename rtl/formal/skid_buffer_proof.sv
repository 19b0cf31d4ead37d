// Skid buffer: transfers come out in order, none lost or repeated, and what is offered on m_axis stays. Proved for any number of
// clocks.

`default_nettype none

module skid_buffer_proof (
    input wire       clk,
    input wire       rst,
    input wire [3:0] s_axis_tdata,
    input wire       s_axis_tvalid,
    input wire       m_axis_tready
);
  wire s_axis_tready, m_axis_tvalid;
  wire [3:0] m_axis_tdata;

  skid_buffer #(.WIDTH(4)) dut (
      .clk(clk), .rst(rst), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid), .s_axis_tready(s_axis_tready),
      .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready));

  // What is inside, in order: at most two transfers.
  reg [3:0] oldest, newest;
  reg [1:0] inside;
  reg begun = 1'b0;
  wire into = s_axis_tvalid && s_axis_tready;
  wire out = m_axis_tvalid && m_axis_tready;
  always @(posedge clk) begin
    begun <= 1'b1;
    if (!begun) assume (rst);
    if (rst) inside <= 0;
    else begin
      inside <= inside + into - out;
      if (out) oldest <= inside == 2 ? newest : s_axis_tdata;
      else if (inside == 0) oldest <= s_axis_tdata;
      if (into) newest <= s_axis_tdata;
    end
    if (begun && !rst) begin
      assert (inside <= 2);
      assert (m_axis_tvalid == (inside != 0));
      assert (s_axis_tready == (inside != 2));
      if (inside != 0) assert (m_axis_tdata == oldest);
      if ($past(begun) && !$past(rst) && $past(m_axis_tvalid && !m_axis_tready)) begin
        assert (m_axis_tvalid);
        assert (m_axis_tdata == $past(m_axis_tdata));
      end
      cover (inside == 2 && oldest != newest);
      cover (inside == 0 && $past(inside) == 1 && $past(inside, 2) == 2);
    end
  end
endmodule
