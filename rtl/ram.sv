// A memory with one write port and one read port: the only way in which other modules hold memories.
//
// Function: read-during-write is defined: a read of the address that is written in the same clock gives the new data (a comparator
// and a multiplexer beside the memory, which works the same on every target). Contents are undefined until written: whoever needs
// them cleared sweeps them after reset.
// Latency: one clock. q belongs to the last clock with re = 1 and holds until the next one.
// Throughput: a read and a write a clock.

`default_nettype none

module ram #(
    parameter int WIDTH = 32,
    parameter int ADDRESS_BITS = 8
) (
    input  wire                     clk,

    input  wire                     we,
    input  wire  [ADDRESS_BITS-1:0] waddr,
    input  wire  [WIDTH-1:0]        wdata,

    input  wire                     re,
    input  wire  [ADDRESS_BITS-1:0] raddr,
    output wire  [WIDTH-1:0]        q
);
  logic [WIDTH-1:0] memory[2**ADDRESS_BITS];
  logic [WIDTH-1:0] stored;
  logic [WIDTH-1:0] written;
  logic forward;

  always_ff @(posedge clk) begin
    if (we) memory[waddr] <= wdata;
    if (re) begin
      stored <= memory[raddr];
      written <= wdata;
`ifdef BUG_RAM_FORWARD
      forward <= 1'b0;
`else
      forward <= we && waddr == raddr;
`endif
    end
  end

  assign q = forward ? written : stored;
endmodule

`default_nettype wire
