// The evolution block of a calendar: the gaps between packets from a table that `weft pace compile --memory DIR` writes.
//
// It gives bit for bit what weftwire_pace::EvolutionBlock gives. Each request is answered by the next gap in ticks; the unit of the
// envelope (a round trip or a second) is `ticks_per_unit` long from then on. One gap takes six clocks from request to answer; a
// request can be made in the clock in which the answer is taken. Memories are read with one clock of latency.
//
// Compile in a folder that has gaps.mem, changes.mem and bands.mem, with that folder in the include path.

`default_nettype none

module pace_evolution (
    input  wire         clock,
    input  wire         reset,           // synchronous; the next gap is the first again
    input  wire  [39:0] ticks_per_unit,
    input  wire         request_valid,
    output wire         request_ready,
    output wire         answer_valid,
    input  wire         answer_ready,
    output wire  [63:0] answer_ticks
);
  `include "pace_parameters.svh"

  localparam int OCTAVE_BITS = 5;
  localparam int SCALE_BITS = 40;
  localparam int FINE_BITS = 7;
  localparam int PRODUCT_BITS = GRAIN_BITS + SCALE_BITS;

  // One bit each, in the order of their clocks; bit 2 is that of the first multiplication.
  localparam int IDLE = 0, READ = 1, SUM = 3, SCALE = 4, ROUND = 5, ANSWER = 6;
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

  assign request_ready = state[IDLE] || (state[ANSWER] && answer_ready);
  assign answer_valid = state[ANSWER];
  assign answer_ticks = ticks;
  wire start = request_valid && request_ready;

  // Marsaglia's xorshift of 32 bits; its upper bits draw an entry.
  wire [31:0] random_1 = random ^ (random << 13);
  wire [31:0] random_2 = random_1 ^ (random_1 >> 17);
  wire [31:0] random_3 = random_2 ^ (random_2 << 5);

  // Memories.
  logic [WORD_BITS-1:0] gaps[0:ENTRIES-1];
  logic [39:0] bands[0:BANDS-1];
  initial $readmemh("gaps.mem", gaps);
  initial $readmemh("bands.mem", bands);
  logic [WORD_BITS-1:0] gap;
  logic [39:0] shape;
  always_ff @(posedge clock) begin
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
    if (INTERPOLATES != 0) begin : interpolate
      localparam int FACTOR_BITS = PLACE_BITS + 2;
      logic [WORD_BITS-1:0] changes[0:ENTRIES-1];
      initial $readmemh("changes.mem", changes);
      logic signed [WORD_BITS-1:0] change;
      always_ff @(posedge clock) change <= $signed(changes[entry]);
      wire [6:0] down = (change_shift < 0) ? 7'(-change_shift) : 7'd0;
      wire signed [FACTOR_BITS-1:0] one = 1;
      wire signed [FACTOR_BITS-1:0] size = one <<< ({1'b0, packets_log2} + {1'b0, octave});
      wire signed [FACTOR_BITS-1:0] factor = $signed({1'b0, place, 1'b1}) - size;
      wire signed [WORD_BITS+FACTOR_BITS-1:0] whole = change * factor;
      if (WORD_BITS + FACTOR_BITS < SUM_BITS) begin : widen
        wire signed [SUM_BITS-1:0] wide = {{(SUM_BITS - WORD_BITS - FACTOR_BITS) {whole[WORD_BITS+FACTOR_BITS-1]}}, whole};
        always_ff @(posedge clock) change_part <= wide <<< down;
      end else begin : keep
        always_ff @(posedge clock) change_part <= whole[SUM_BITS-1:0] <<< down;
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

  always_ff @(posedge clock) begin
    if (start) begin
      state <= 7'd1 << READ;
      scale <= ticks_per_unit;
      if (THEN == 3) begin
        random <= random_3;
        entry <= (ENTRIES == 1) ? '0 : random_3[31-:ENTRY_BITS];
      end
    end else if (state[ANSWER] && answer_ready) begin
      state <= 7'd1 << IDLE;
    end else if (!state[IDLE] && !state[ANSWER]) begin
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
      if (CARRIES != 0) carry <= {1'b0, total[FRACTION_BITS-1:0]};
    end

    if (reset) begin
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
      random <= SEED[31:0];
    end
  end
endmodule

`default_nettype wire
