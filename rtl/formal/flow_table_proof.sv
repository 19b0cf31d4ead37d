// Flow table: two tables of two rows of one entry, a stash of one, keys of three bits; any hash. One symbolic key is followed: a
// lookup, insert or delete finds it exactly if it is in the table, with its value, and only a refused insert leaves it out; a refusal
// only when the stash is full. Checked to a depth.

`default_nettype none

module flow_table_proof (
    input wire       clk,
    input wire       rst,
    input wire       req_valid,
    input wire [1:0] req_operation,
    input wire [2:0] req_key,
    input wire       req_value
);
  wire ready, req_ready, result_valid, result_hit, result_refused, result_value, stashed;
  (* anyconst *) reg [3:0] hash_key;
  (* anyconst *) reg [2:0] mine;

  flow_table #(.KEY_BITS(3), .VALUE_BITS(1), .TABLES(2), .ROW_BITS(1), .WAYS(1), .STASH(1)) dut (
      .clk(clk), .rst(rst), .ready(ready), .hash_key(hash_key),
      .req_valid(req_valid), .req_ready(req_ready), .req_operation(req_operation), .req_key(req_key), .req_value(req_value),
      .result_valid(result_valid), .result_hit(result_hit), .result_refused(result_refused), .result_value(result_value),
      .stashed(stashed));

  reg present, value, given;
  reg [1:0] operation;
  reg [2:0] key;
  reg [2:0] waited;
  reg under_way;
  reg begun = 1'b0;
  wire taken = req_valid && req_ready;
  always @(posedge clk) begin
    begun <= 1'b1;
    if (!begun) assume (rst);
    else assume (!rst);
    assume (req_operation != 3);
    if (rst) begin
      present <= 0;
      under_way <= 0;
      waited <= 0;
    end else begin
      if (taken) begin
        operation <= req_operation;
        key <= req_key;
        given <= req_value;
        under_way <= 1;
        waited <= 0;
      end else waited <= waited + under_way;
      if (result_valid) begin
        if (!taken) under_way <= 0;
        if (key == mine) begin
          if (operation == 1 && !present && !result_refused) begin
            present <= 1;
            value <= given;
          end
          if (operation == 2) present <= 0;
        end
      end
    end
    if (begun && !rst) begin
      if (under_way) assert (waited < 4);
      if (result_valid) begin
        assert (under_way);
        if (key == mine) begin
          assert (result_hit == present);
          if (present) assert (result_value == value);
          if (present) assert (!result_refused);
        end
        if (result_refused) assert (operation == 1 && stashed);
      end
      cover (result_valid && result_refused && key == mine);
      cover (result_valid && key == mine && present && stashed);
      cover (!stashed && $past(stashed) && present && !under_way);
    end
  end
endmodule
