// A round-robin arbiter.
//
// Function: grant has at most one bit, of a request; accept says that the granted transfer takes place in this clock. A request
// that stays waits for at most REQUESTS - 1 accepted grants of others. A grant that is not accepted stays with its requester, as
// AXI-Stream demands of tvalid, while that requests.
// Latency: none (combinational). Throughput: a grant a clock.

`default_nettype none

module arbiter #(
    parameter int REQUESTS = 4
) (
    input  wire                 clk,
    input  wire                 rst,      // synchronous
    input  wire  [REQUESTS-1:0] request,
    input  wire                 accept,
    output logic [REQUESTS-1:0] grant
);
  // Requesters after the last one that was granted, which come first; and a grant that waits for accept.
  logic [REQUESTS-1:0] after, held;

  wire [REQUESTS-1:0] first = request & after;
  wire [REQUESTS-1:0] chosen = |first ? first : request;

  always_comb begin
    grant = chosen & (~chosen + 1'b1);
`ifndef BUG_ARBITER_HOLD
    if (|(held & request)) grant = held;
`endif
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      after <= '0;
      held <= '0;
    end else begin
      held <= accept ? '0 : grant;
      // All bits above that of the grant.
`ifndef BUG_ARBITER_UNFAIR
      if (accept && |grant) after <= ~(grant | (grant - 1'b1));
`endif
    end
  end
endmodule

`default_nettype wire
