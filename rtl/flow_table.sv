// A flow table: exact match of a key, which gives the number of a flow.
//
// Function: lookup, insert (of a key that is there: gives its value, changes nothing) and delete. TABLES tables of 2^ROW_BITS rows
// of WAYS entries are read in parallel at a keyed (Toeplitz) hash of the key of their own; a new entry goes to the emptiest row, of
// equal ones to the leftmost (d-left), and if all are full to the stash of STASH entries, which are compared with every key. Where
// that is full too, the insert is refused and says so: no entry is ever lost or moved silently. Between requests stashed
// entries go back to rows as soon as one has room.
// Latency: four clocks from the transfer of a request to its result. Throughput: a request in four clocks; constant for each
// operation at each occupancy. A request may wait three clocks for an entry that goes back.
// Interface: req_* is a transfer with valid and ready; result_valid is a pulse. hash_key is drawn by the host, and stays while the
// table has entries. After reset, 2^ROW_BITS clocks until ready, in which all entries are cleared.

`default_nettype none

module flow_table #(
    parameter int KEY_BITS = 320,
    parameter int VALUE_BITS = 12,
    parameter int TABLES = 4,
    parameter int ROW_BITS = 9,
    parameter int WAYS = 4,
    parameter int STASH = 16
) (
    input  wire                                    clk,
    input  wire                                    rst,            // synchronous
    output logic                                   ready,
    input  wire  [KEY_BITS+TABLES*ROW_BITS-2:0]    hash_key,

    input  wire                                    req_valid,
    output wire                                    req_ready,
    input  wire  [1:0]                             req_operation,  // 0 lookup, 1 insert, 2 delete
    input  wire  [KEY_BITS-1:0]                    req_key,
    input  wire  [VALUE_BITS-1:0]                  req_value,      // of an insert

    output logic                                   result_valid,
    output logic                                   result_hit,     // the key was there
    output logic                                   result_refused, // an insert found no room; nothing has changed
    output logic [VALUE_BITS-1:0]                  result_value,   // of the key that was there

    output wire  [$clog2(STASH+1)-1:0]             stashed         // entries in the stash
);
  localparam int ENTRY_BITS = 1 + KEY_BITS + VALUE_BITS;
  localparam int ROW_WIDTH = WAYS * ENTRY_BITS;
  localparam int COUNT_BITS = $clog2(WAYS + 1);
  localparam int PLACE_BITS = STASH > 1 ? $clog2(STASH) : 1;
  localparam logic [1:0] INSERT = 1, DELETE = 2, RETURN = 3;

  localparam logic [2:0] SWEEP = 0, IDLE = 1, HASHED = 2, READ = 3, MATCHED = 4;
  logic [2:0] state;
  logic [ROW_BITS-1:0] sweep;

  // RETURN is the table's own operation: an entry of the stash goes to a row that has room.
  logic [1:0] operation;
  logic [KEY_BITS-1:0] key;
  logic [VALUE_BITS-1:0] value;
  logic [TABLES*ROW_BITS-1:0] row;

  logic [STASH-1:0] stash_valid;
  logic [STASH*KEY_BITS-1:0] stash_key;
  logic [STASH*VALUE_BITS-1:0] stash_value;
  // The entry that is tried next.
  logic [PLACE_BITS-1:0] turn;

  // A return begins only in a clock without a request.
  wire start_return = state == IDLE && !req_valid && stash_valid[turn];
  assign req_ready = state == IDLE;

  // ---- the hash: bit j is the parity of the key under the bits of hash_key from j on
  logic [TABLES*ROW_BITS-1:0] hash;
  always_comb begin
    for (int j = 0; j < TABLES * ROW_BITS; j++) hash[j] = ^(key & hash_key[j+:KEY_BITS]);
  end

  // ---- the tables
  wire [TABLES*ROW_WIDTH-1:0] rows;
  logic [TABLES-1:0] write;
  logic [TABLES*ROW_WIDTH-1:0] rows_kept;
  logic [TABLES*WAYS-1:0] match, chosen;
  logic write_entry;
  generate
    for (genvar table_index = 0; table_index < TABLES; table_index++) begin : gen_tables
      logic [ROW_WIDTH-1:0] changed;
      always_comb begin
        changed = rows_kept[table_index*ROW_WIDTH+:ROW_WIDTH];
        for (int way = 0; way < WAYS; way++) begin
          if (chosen[table_index*WAYS+way]) begin
            changed[way*ENTRY_BITS+:ENTRY_BITS] = write_entry ? {1'b1, key, value} : '0;
          end
        end
      end
      ram #(.WIDTH(ROW_WIDTH), .ADDRESS_BITS(ROW_BITS)) entries (
          .clk(clk),
          .we(state == SWEEP || write[table_index]),
          .waddr(state == SWEEP ? sweep : row[table_index*ROW_BITS+:ROW_BITS]),
          .wdata(state == SWEEP ? '0 : changed),
          .re(state == HASHED),
          .raddr(hash[table_index*ROW_BITS+:ROW_BITS]),
          .q(rows[table_index*ROW_WIDTH+:ROW_WIDTH]));
    end
  endgenerate

  // ---- compare: in the clock READ, kept for MATCHED
  logic [TABLES*WAYS-1:0] match_now, free_now;
  logic [STASH-1:0] stash_match_now;
  always_comb begin
    for (int way = 0; way < TABLES * WAYS; way++) begin
      free_now[way] = !rows[way*ENTRY_BITS+ENTRY_BITS-1];
      match_now[way] = !free_now[way] && rows[way*ENTRY_BITS+VALUE_BITS+:KEY_BITS] == key;
    end
    for (int place = 0; place < STASH; place++) begin
      stash_match_now[place] = stash_valid[place] && stash_key[place*KEY_BITS+:KEY_BITS] == key;
    end
  end
  logic [TABLES*WAYS-1:0] free;
  logic [STASH-1:0] stash_match;

  // ---- decide
  logic [TABLES*WAYS-1:0] place_row;       // one-hot: where a new entry goes
  logic [COUNT_BITS-1:0] count, most;
  logic [WAYS-1:0] ways;
  logic [VALUE_BITS-1:0] found;
  logic [STASH-1:0] place_stash;
  always_comb begin
    place_row = '0;
    most = '0;
    for (int t = 0; t < TABLES; t++) begin
      count = '0;
      ways = free[t*WAYS+:WAYS];
      for (int way = 0; way < WAYS; way++) count = count + COUNT_BITS'(ways[way]);
      if (count > most) begin
        most = count;
        place_row = '0;
        place_row[t*WAYS+:WAYS] = ways & (~ways + 1'b1);
      end
    end
    found = '0;
    for (int way = 0; way < TABLES * WAYS; way++) begin
      if (match[way]) found = found | rows_kept[way*ENTRY_BITS+:VALUE_BITS];
    end
    for (int place = 0; place < STASH; place++) begin
      if (stash_match[place]) found = found | stash_value[place*VALUE_BITS+:VALUE_BITS];
    end
    place_stash = ~stash_valid & (stash_valid + 1'b1);
  end
  wire hit = |match || |stash_match;
  wire add = operation == INSERT && !hit;
  wire into_row = (add || operation == RETURN) && |place_row;
  wire into_stash = add && !(|place_row) && |place_stash;
  assign chosen = operation == DELETE ? match : place_row;
  assign write_entry = operation != DELETE;
  always_comb begin
    for (int t = 0; t < TABLES; t++) begin
      write[t] = state == MATCHED && (into_row || operation == DELETE) && |chosen[t*WAYS+:WAYS];
    end
  end

  always_ff @(posedge clk) begin
    result_valid <= 1'b0;
    if (rst) begin
      state <= SWEEP;
      sweep <= '0;
      ready <= 1'b0;
      stash_valid <= '0;
      turn <= '0;
    end else begin
      unique case (state)
        SWEEP: begin
          sweep <= sweep + 1'b1;
          if (&sweep) begin
            state <= IDLE;
            ready <= 1'b1;
          end
        end
        IDLE: begin
          if (req_valid || start_return) state <= HASHED;
          operation <= req_valid ? req_operation : RETURN;
          key <= req_valid ? req_key : stash_key[turn*KEY_BITS+:KEY_BITS];
          value <= req_valid ? req_value : stash_value[turn*VALUE_BITS+:VALUE_BITS];
          if (!req_valid && !stash_valid[turn]) turn <= turn == PLACE_BITS'(STASH - 1) ? '0 : turn + 1'b1;
        end
        HASHED: begin
          row <= hash;
          state <= READ;
        end
        READ: begin
          rows_kept <= rows;
          match <= match_now;
          free <= free_now;
          stash_match <= stash_match_now;
          state <= MATCHED;
        end
        default: begin
          state <= IDLE;
          result_valid <= operation != RETURN;
          result_hit <= hit;
          result_refused <= add && !into_row && !into_stash;
          result_value <= found;
          if (operation == DELETE) stash_valid <= stash_valid & ~stash_match;
          if (operation == RETURN) begin
            turn <= turn == PLACE_BITS'(STASH - 1) ? '0 : turn + 1'b1;
`ifdef BUG_FLOW_RETURN
            stash_valid[turn] <= 1'b0;
`else
            if (into_row) stash_valid[turn] <= 1'b0;
`endif
          end
`ifdef BUG_FLOW_STASH
          if (add && !(|place_row)) begin
            stash_valid[0] <= 1'b1;
            stash_key[0+:KEY_BITS] <= key;
            stash_value[0+:VALUE_BITS] <= value;
          end
`else
          for (int place = 0; place < STASH; place++) begin
            if (into_stash && place_stash[place]) begin
              stash_valid[place] <= 1'b1;
              stash_key[place*KEY_BITS+:KEY_BITS] <= key;
              stash_value[place*VALUE_BITS+:VALUE_BITS] <= value;
            end
          end
`endif
        end
      endcase
    end
  end

  logic [$clog2(STASH+1)-1:0] sum;
  always_comb begin
    sum = '0;
    for (int place = 0; place < STASH; place++) sum = sum + $clog2(STASH + 1)'(stash_valid[place]);
  end
  assign stashed = sum;
endmodule

`default_nettype wire
