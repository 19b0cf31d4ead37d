// Arbiter of four: at most one grant, to one that requests; none is withdrawn; a request that stays waits for at most three grants
// to others. Proved for any number of clocks.

`default_nettype none

module arbiter_proof (
    input wire       clk,
    input wire       rst,
    input wire [3:0] request,
    input wire       accept
);
  wire [3:0] grant;
  arbiter #(.REQUESTS(4)) dut (.clk(clk), .rst(rst), .request(request), .accept(accept), .grant(grant));

  (* anyconst *) reg [1:0] which;
  reg [2:0] others;
  reg begun = 1'b0;
  wire [3:0] mine = 4'b1 << which;
  always @(posedge clk) begin
    begun <= 1'b1;
    if (!begun) assume (rst);
    if (rst || !(request & mine)) others <= 0;
    else if (accept && grant != 0) others <= (grant & mine) != 0 ? 0 : others + 1'b1;
    if (begun && !rst) begin
      assert ((grant & (grant - 1'b1)) == 0);
      assert ((grant & ~request) == 0);
      assert ((grant != 0) == (request != 0));
      assert (others <= 3);
      if ($past(begun) && !$past(rst) && $past(grant != 0 && !accept) && (request & $past(grant)) != 0)
        assert (grant == $past(grant));
      cover (others == 3);
    end
  end
endmodule
