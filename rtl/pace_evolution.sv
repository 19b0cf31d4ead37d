// The evolution block of a calendar: computes the gaps between packets from a table that `weft pace compile --memory DIR` writes.
//
// It gives bit for bit what weftwire_pace::EvolutionBlock gives. Each transfer on s_axis asks for the next gap and carries the
// length of the envelope's unit (a round trip or a second) in ticks; the gap, in ticks, is the next transfer on m_axis. A gap takes
// six clock cycles; the next s_axis transfer can take place in the cycle of the m_axis transfer. Memories are read with one cycle
// of latency.
//
// All parameters of a table but its folder are in DIR/pace_parameters.svh, so each instance can have a table of its own:
//
//   pace_evolution #(
//       .FOLDER("DIR"),
//       `include "DIR/pace_parameters.svh"
//   ) name (...);

`default_nettype none

module pace_evolution #(
    parameter FOLDER = ".",                     // of gaps.mem, changes.mem and bands.mem
    parameter int WORD_BITS = 32,               // width of a gap, and of a change
    parameter int ENTRIES = 1,                  // lines of gaps.mem and changes.mem
    parameter int ENTRY_BITS = 1,               // width of an entry's index
    parameter int BANDS = 1,                    // lines of bands.mem
    parameter int BAND_BITS = 1,                // width of a band's index
    parameter int FRACTION_BITS = 40,           // a grain is 2^-FRACTION_BITS of the unit
    parameter int GRAIN_BITS = 40,              // width of a gap in grains
    parameter int SUM_BITS = 48,                // width of a gap before it is rounded, with its sign
    parameter int PLACE_BITS = 2,               // width of a packet's index in a block
    parameter bit INTERPOLATES = 0,             // whether gaps change within a block
    parameter bit CARRIES = 1,                  // whether fractions of a tick are carried to the next gap
    parameter int THEN = 0,                     // after the last entry: 0 hold, 1 repeat, 2 double; 3: entries are drawn
    parameter int THEN_BAND = 0,                // the band to continue at
    parameter int THEN_ENTRY = 0,               // the entry to continue at
    parameter int OCTAVES = 0,                  // rounds that are doubled
    parameter logic [63:0] EXTRA_GRAINS = 0,    // added to the last gap of each round, in grains
    parameter logic [63:0] NUMERATOR = 0,       // and a fraction of a grain
    parameter logic [63:0] DENOMINATOR = 1,     // its denominator
    parameter logic [31:0] SEED = 1             // first state of the random generator
) (
    input  wire         clk,
    input  wire         rst,            // synchronous; the next gap is the first one again

    input  wire  [39:0] s_axis_tdata,   // ticks per unit
    input  wire         s_axis_tvalid,
    output wire         s_axis_tready,

    output wire  [63:0] m_axis_tdata,   // the gap, in ticks
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready
);
  localparam int OCTAVE_BITS = 5;
  localparam int SCALE_BITS = 40;
  localparam int FINE_BITS = 7;
  localparam int PRODUCT_BITS = GRAIN_BITS + SCALE_BITS;

  // One bit each, in the order of their clocks; bit 2 is that of the first multiplication.
  localparam int IDLE = 0, READ = 1, SUM = 3, SCALE = 4, ROUND = 5, OUTPUT = 6;
  logic [6:0] state;

  // Where it is.
  logic [BAND_BITS-1:0] band;
  logic [20:0] block;
  logic [ENTRY_BITS-1:0] entry;
  logic [PLACE_BITS-1:0] place;
  logic [OCTAVE_BITS-1:0] octave;
  logic held;

  // What is carried: below a grain in a block, below a grain from round to round, below a tick.
  logic signed [SUM_BITS-1:0] rest;
  logic [63:0] part;
  logic [FRACTION_BITS:0] carry;
  logic [31:0] random;

  logic [39:0] scale;
  logic [GRAIN_BITS-1:0] grains;
  logic [GRAIN_BITS-1:0] held_grains;
  logic [PRODUCT_BITS-1:0] product;
  logic [63:0] ticks;

  assign s_axis_tready = state[IDLE] || (state[OUTPUT] && m_axis_tready);
  assign m_axis_tvalid = state[OUTPUT];
  assign m_axis_tdata = ticks;
  wire start = s_axis_tvalid && s_axis_tready;

  // Marsaglia's xorshift of 32 bits; its upper bits draw an entry.
  wire [31:0] random_1 = random ^ (random << 13);
  wire [31:0] random_2 = random_1 ^ (random_1 >> 17);
  wire [31:0] random_3 = random_2 ^ (random_2 << 5);

  // Memories.
  logic [WORD_BITS-1:0] gaps[0:ENTRIES-1];
  logic [39:0] bands[0:BANDS-1];
  initial $readmemh({FOLDER, "/gaps.mem"}, gaps);
  initial $readmemh({FOLDER, "/bands.mem"}, bands);
  logic [WORD_BITS-1:0] gap;
  logic [39:0] shape;
  always_ff @(posedge clk) begin
    gap <= gaps[entry];
    shape <= bands[band];
  end
  wire [20:0] blocks = shape[39:19];
  wire [4:0] packets_log2 = shape[18:14];
  wire [5:0] gap_shift = shape[13:8];
  wire signed [7:0] change_shift = $signed(shape[7:0]);
  wire [6:0] up = (change_shift > 0) ? change_shift[6:0] : 7'd0;

  // The change times the packet's place in the block.
  logic signed [SUM_BITS-1:0] change_part;
  generate
    if (INTERPOLATES) begin : interpolate
      localparam int FACTOR_BITS = PLACE_BITS + 2;
      logic [WORD_BITS-1:0] changes[0:ENTRIES-1];
      initial $readmemh({FOLDER, "/changes.mem"}, changes);
      logic signed [WORD_BITS-1:0] change;
      always_ff @(posedge clk) change <= $signed(changes[entry]);
      wire [6:0] down = (change_shift < 0) ? 7'(-change_shift) : 7'd0;
      wire signed [FACTOR_BITS-1:0] one = 1;
      wire signed [FACTOR_BITS-1:0] size = one <<< ({1'b0, packets_log2} + {1'b0, octave});
      wire signed [FACTOR_BITS-1:0] factor = $signed({1'b0, place, 1'b1}) - size;
      wire signed [WORD_BITS+FACTOR_BITS-1:0] whole = change * factor;
      if (WORD_BITS + FACTOR_BITS < SUM_BITS) begin : widen
        wire signed [SUM_BITS-1:0] wide = {{(SUM_BITS - WORD_BITS - FACTOR_BITS) {whole[WORD_BITS+FACTOR_BITS-1]}}, whole};
        always_ff @(posedge clk) change_part <= wide <<< down;
      end else begin : keep
        always_ff @(posedge clk) change_part <= whole[SUM_BITS-1:0] <<< down;
      end
    end else begin : constant
      assign change_part = '0;
    end
  endgenerate

  // The gap in grains.
  /* verilator lint_off UNUSEDSIGNAL */ // No more bits than a gap can have.
  wire [WORD_BITS+63:0] gap_wide = {64'b0, gap};
  /* verilator lint_on UNUSEDSIGNAL */
  wire [FINE_BITS-1:0] fine = {1'b0, octave, 1'b0} + up;
  wire [FINE_BITS-1:0] mean_shift = {1'b0, gap_shift} + fine - {2'b0, octave};
  wire [SUM_BITS-1:0] mean = {{(SUM_BITS - WORD_BITS) {1'b0}}, gap} << mean_shift;
  wire signed [SUM_BITS-1:0] sum = rest + $signed(mean) + change_part;
  wire [SUM_BITS-1:0] below = ~({SUM_BITS{1'b1}} << fine);
  wire signed [SUM_BITS-1:0] rounded = sum >>> fine;
  wire [GRAIN_BITS-1:0] next_grains = rounded[SUM_BITS-1] ? '0 : rounded[GRAIN_BITS-1:0];

  // The end of a block, of a band, of all bands.
  wire [PLACE_BITS-1:0] next_place = place + 1'b1;
  wire block_ends = (next_place >> ({1'b0, packets_log2} + {1'b0, octave})) != 0;
  wire band_ends = block_ends && block + 21'd1 == blocks;
  wire all_ends = band_ends && 32'(band) == BANDS - 1;
  wire again = (THEN == 1) || (THEN == 2 && 32'(octave) < OCTAVES);

  // What a finished round adds to its last gap.
  wire [63:0] next_part = part + NUMERATOR;
  wire part_is_whole = next_part >= DENOMINATOR;
  wire [GRAIN_BITS-1:0] round_grains = EXTRA_GRAINS[GRAIN_BITS-1:0] + {{(GRAIN_BITS - 1) {1'b0}}, part_is_whole};

  // Ticks, and what is left of one.
  wire [PRODUCT_BITS:0] total = {1'b0, product} + {{(PRODUCT_BITS - FRACTION_BITS) {1'b0}}, carry};
  /* verilator lint_off UNUSEDSIGNAL */ // A gap of 2^64 ticks does not count.
  wire [PRODUCT_BITS+64:0] whole_ticks = {64'b0, total} >> FRACTION_BITS;
  /* verilator lint_on UNUSEDSIGNAL */

  always_ff @(posedge clk) begin
    if (start) begin
      state <= 7'd1 << READ;
      scale <= s_axis_tdata;
      if (THEN == 3) begin
        random <= random_3;
        entry <= (ENTRIES == 1) ? '0 : random_3[31-:ENTRY_BITS];
      end
    end else if (state[OUTPUT] && m_axis_tready) begin
      state <= 7'd1 << IDLE;
    end else if (!state[IDLE] && !state[OUTPUT]) begin
      state <= state << 1;
    end

    if (state[SUM]) begin
      if (held) begin
        grains <= held_grains;
      end else if (THEN == 3) begin
        grains <= gap_wide[GRAIN_BITS-1:0];
      end else begin
        grains <= next_grains;
        place <= block_ends ? '0 : next_place;
        rest <= block_ends ? '0 : sum & $signed(below);
        if (block_ends) begin
          entry <= entry + 1'b1;
          block <= band_ends ? '0 : block + 21'd1;
        end
        if (band_ends) band <= band + 1'b1;
        if (all_ends) begin
          if (again) begin
            band <= THEN_BAND[BAND_BITS-1:0];
            entry <= THEN_ENTRY[ENTRY_BITS-1:0];
          end
          if (THEN == 1) begin
            grains <= next_grains + round_grains;
            part <= part_is_whole ? next_part - DENOMINATOR : next_part;
          end else if (again) begin
            octave <= octave + 1'b1;
          end else begin
            held <= 1'b1;
            held_grains <= next_grains;
          end
        end
      end
    end

    if (state[SCALE]) product <= {{SCALE_BITS{1'b0}}, grains} * {{GRAIN_BITS{1'b0}}, scale};

    if (state[ROUND]) begin
      ticks <= whole_ticks[63:0];
      if (CARRIES) carry <= {1'b0, total[FRACTION_BITS-1:0]};
    end

    if (rst) begin
      state <= 7'd1 << IDLE;
      band <= '0;
      block <= '0;
      entry <= '0;
      place <= '0;
      octave <= '0;
      held <= 1'b0;
      rest <= '0;
      part <= '0;
      // Half a tick: sums are rounded to the nearest.
      carry <= {2'b01, {(FRACTION_BITS - 1) {1'b0}}};
      random <= SEED;
    end
  end
endmodule

`default_nettype wire
