// A calendar: 2^ID_BITS timers, each with a number (id), which expire in the exact order of (deadline, order in which they were set).
//
// Function: `set` starts a timer, or moves one that runs; `cancel` stops one. Expired timers leave on m_axis. No set is ever refused.
// Deadlines and `now` are unsigned, `now` never goes back. A deadline before the last expiry counts as that instant, so a delay of
// 0 fires. Sets and cancels are taken while m_axis waits.
//
// Structure: a time is a number of LEVELS digits of DIGIT_BITS. A timer is in the list of the highest digit in which its deadline
// differs from `base`, a time that follows `now`; so timers of equal deadlines are always in one list, in the order set. When `now`
// reaches the start of the first list that is not empty, its timers are distributed, in their order, to lists of lower digits;
// those of the lowest digit have one deadline, and expire. Meanwhile new timers of that list go to its end. A list of a single
// timer is not distributed digit by digit: it expires, or goes to the place that it has relative to `now`.
//
// Latency: from cmd_valid to cmd_ready at most 4 clocks for the set of a timer that does not run and for any cancel (2 where
// nothing is distributed), at most 6 for the set of one that runs, whatever the deadlines and at any occupancy.
// Throughput: a command in 2 to 4 clocks; a timer is moved or expires in 2 clocks, 4 under commands without a pause.
// Interface: cmd_* is held until cmd_ready; cmd_running, in the clock of cmd_ready, says whether the timer was running (for cancel:
// it will not expire). A timer that is on m_axis has expired. next_known: nothing is under way, and next_deadline, if next_any, is
// a lower bound of all deadlines of running timers, so `now` may jump to it. After reset, 2^ID_BITS clocks until ready.

`default_nettype none

module calendar #(
    parameter int ID_BITS = 10,
    parameter int TIME_BITS = 64,
    parameter int DIGIT_BITS = 6
) (
    input  wire                  clk,
    input  wire                  rst,              // synchronous
    output logic                 ready,            // the sweep after reset is over
    input  wire  [TIME_BITS-1:0] now,

    input  wire                  cmd_valid,
    output wire                  cmd_ready,
    input  wire                  cmd_set,          // 1 set, 0 cancel
    input  wire  [ID_BITS-1:0]   cmd_id,
    input  wire  [TIME_BITS-1:0] cmd_deadline,
    output wire                  cmd_running,

    output logic                 m_axis_tvalid,
    input  wire                  m_axis_tready,
    output logic [ID_BITS-1:0]   m_axis_id,
    output logic [TIME_BITS-1:0] m_axis_deadline,

    output wire                  next_known,
    output wire                  next_any,
    output wire  [TIME_BITS-1:0] next_deadline
);
  localparam int LEVELS = (TIME_BITS + DIGIT_BITS - 1) / DIGIT_BITS;
  localparam int LEVEL_BITS = LEVELS > 1 ? $clog2(LEVELS) : 1;
  localparam int RADIX = 1 << DIGIT_BITS;
  localparam int SLOT_BITS = LEVEL_BITS + DIGIT_BITS;
  localparam int WIDE = LEVELS * DIGIT_BITS;

  // The first clock of everything, in which RAMs are read; the second ones, in which they are written.
  localparam logic [1:0] SWEEP = 0, BEGIN = 1, COMMAND = 2, STEP = 3;
  logic [1:0] state;
  logic [ID_BITS-1:0] sweep;

  logic [TIME_BITS-1:0] base;
  // Lists that are not empty.
  logic [LEVELS*RADIX-1:0] occupied;
  // The last turn was a command's.
  logic after_command;
  // A set has taken out its timer, which ran, and comes again.
  logic replaced;

  // The first list that is not empty, a clock later than `occupied`.
  logic first_fresh, first_any;
  logic [LEVEL_BITS-1:0] first_level;
  logic [DIGIT_BITS-1:0] first_digit;
  logic [TIME_BITS-1:0] first_start;
  wire first_due = first_any && first_start <= now;

  // The list that is distributed: where its timers are, its start, its first timer, whether that was read, whether none was moved yet.
  logic active, head_reading, head_read, whole;
  logic [SLOT_BITS-1:0] active_slot;
  logic [TIME_BITS-1:0] active_base;
  logic [ID_BITS-1:0] head;

  // ---- memories
  wire begin_command, begin_step, begin_search;
  logic link;                                       // a timer is appended to list `slot` in this clock
  logic unlink;                                     // a timer is taken out of its list in this clock
  logic [ID_BITS-1:0] subject;                      // the timer
  logic [SLOT_BITS-1:0] slot;                       // the list it goes to
  logic slot_occupied;
  logic [TIME_BITS-1:0] deadline;                   // with which it goes there
  logic late_link;                                  // the clock after `link`: the last timer of a list gets its mark
  logic [ID_BITS-1:0] late_subject;

  wire [TIME_BITS-1:0] record_deadline;
  wire record_last, record_first_mark, record_running;
  wire [ID_BITS-1:0] record_next, record_previous;
  wire [SLOT_BITS-1:0] record_slot;
  wire [ID_BITS-1:0] slot_head, slot_tail;

  wire record_first = record_first_mark || (active && subject == head && record_slot == active_slot);

  logic [ID_BITS-1:0] head_now;                     // `head` after this clock
  logic record_read;
  wire [ID_BITS-1:0] record_address = begin_command ? cmd_id : head_now;
  logic [SLOT_BITS-1:0] target;                     // the list where a timer belongs

  wire [ID_BITS-1:0] where_address = state == SWEEP ? sweep : subject;
  wire where_write = state == SWEEP || link || unlink;

  ram #(.WIDTH(TIME_BITS), .ADDRESS_BITS(ID_BITS)) deadlines (
      .clk(clk), .we(link && state == COMMAND), .waddr(subject), .wdata(deadline),
      .re(record_read), .raddr(record_address), .q(record_deadline));
  ram #(.WIDTH(SLOT_BITS + 1), .ADDRESS_BITS(ID_BITS)) places (
      .clk(clk), .we(where_write), .waddr(where_address), .wdata({link, slot}),
      .re(record_read), .raddr(record_address), .q({record_running, record_slot}));
  // A list's last timer has 1 and nothing, others 0 and the next one.
  wire append = link && slot_occupied;
  // Only a command takes timers out of the middle.
  wire bridge_next = unlink && state == COMMAND && !record_first;
  wire bridge_previous = unlink && state == COMMAND && !record_last;
  ram #(.WIDTH(ID_BITS + 1), .ADDRESS_BITS(ID_BITS)) nexts (
      .clk(clk), .we(append || bridge_next || late_link),
      .waddr(append ? slot_tail : bridge_next ? record_previous : late_subject),
      .wdata(append ? {1'b0, subject} : bridge_next ? {record_last, record_next} : {1'b1, {ID_BITS{1'b0}}}),
      .re(record_read), .raddr(record_address), .q({record_last, record_next}));
  // A list's first timer has 1. That of the active list has `head` instead.
  ram #(.WIDTH(ID_BITS + 1), .ADDRESS_BITS(ID_BITS)) previous (
      .clk(clk), .we(link || bridge_previous),
      .waddr(link ? subject : record_next),
      .wdata(link ? {!slot_occupied, slot_tail} : {record_first, record_previous}),
      .re(record_read), .raddr(record_address), .q({record_first_mark, record_previous}));
  ram #(.WIDTH(ID_BITS), .ADDRESS_BITS(SLOT_BITS)) heads (
      .clk(clk), .we((link && !slot_occupied) || (unlink && state == COMMAND && record_first)),
      .waddr(link ? slot : record_slot), .wdata(link ? subject : record_next),
      .re(begin_search), .raddr({first_level, first_digit}), .q(slot_head));
  ram #(.WIDTH(ID_BITS), .ADDRESS_BITS(SLOT_BITS)) tails (
      .clk(clk), .we(link || (unlink && state == COMMAND && record_last)),
      .waddr(link ? slot : record_slot), .wdata(link ? subject : record_previous),
      .re(begin_command || begin_step), .raddr(target), .q(slot_tail));

  // ---- what happens in the first clock
  // In the active list: the only timer of the calendar's first list, which may skip digits; one that is due.
  wire alone = whole && record_last;
  wire expires = active_slot[SLOT_BITS-1:DIGIT_BITS] == 0 || (alone && record_deadline <= now);
  wire can_step = active && head_read && (!expires || !m_axis_tvalid || m_axis_tready);
  wire want_step = can_step || (active && (head_reading || !head_read));
  wire want_search = !active && (!first_fresh || first_due);
  // Both turns of a set of a timer that runs follow each other, so that no other expires between them.
  wire command_first = cmd_valid && (replaced || !(after_command && (want_step || want_search)));

  assign begin_command = state == BEGIN && command_first;
  assign begin_step = state == BEGIN && !command_first && can_step;
  assign begin_search = state == BEGIN && !command_first && !active && first_fresh && first_due;

  // ---- the list where a timer belongs
  wire [TIME_BITS-1:0] floor_time = active ? active_base : base;
  wire [TIME_BITS-1:0] cmd_time = cmd_deadline < floor_time ? floor_time : cmd_deadline;
  wire [TIME_BITS-1:0] step_base = alone ? now : active_base;
  wire [TIME_BITS-1:0] placed = begin_command ? cmd_time : record_deadline;
  wire [TIME_BITS-1:0] relative = begin_command ? base : step_base;
  wire [WIDE-1:0] placed_wide = WIDE'(placed);
  wire [WIDE-1:0] differs = placed_wide ^ WIDE'(relative);
  always_comb begin
    target = {{LEVEL_BITS{1'b0}}, placed_wide[DIGIT_BITS-1:0]};
    for (int level = 1; level < LEVELS; level++) begin
      if (|differs[level*DIGIT_BITS+:DIGIT_BITS]) begin
        target = {LEVEL_BITS'(level), placed_wide[level*DIGIT_BITS+:DIGIT_BITS]};
      end
    end
  end

  // ---- what happens in the second clock
  logic set_request, step_expires, step_last;
  logic [TIME_BITS-1:0] step_base_kept;
  always_comb begin
    link = 1'b0;
    unlink = 1'b0;
    if (state == COMMAND) begin
      unlink = record_running;
      link = set_request && !record_running;
    end else if (state == STEP) begin
      unlink = step_expires;
      link = !step_expires;
    end
  end
  assign cmd_ready = state == COMMAND && !(set_request && record_running);
  assign cmd_running = record_running || replaced;

  // The active list loses its first timer.
  wire lose_head = state == STEP || (state == COMMAND && unlink && active && subject == head && record_slot == active_slot);
  wire lose_last = lose_head && (state == STEP ? step_last : record_last);
  wire empties = (state == COMMAND && unlink && record_first && record_last) || (state == STEP && step_last);
  wire [SLOT_BITS-1:0] emptied = state == STEP ? active_slot : record_slot;

  always_comb begin
    head_now = head_reading ? slot_head : head;
    if (lose_head) head_now = record_next;
    // The record of a step stays in its second clock.
    record_read = state != SWEEP && !begin_step;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= SWEEP;
      sweep <= '0;
      ready <= 1'b0;
      base <= '0;
      occupied <= '0;
      after_command <= 1'b0;
      active <= 1'b0;
      head_reading <= 1'b0;
      head_read <= 1'b0;
      m_axis_tvalid <= 1'b0;
      late_link <= 1'b0;
      replaced <= 1'b0;
      first_fresh <= 1'b0;
      first_any <= 1'b0;
    end else begin
      if (m_axis_tvalid && m_axis_tready) m_axis_tvalid <= 1'b0;
      late_link <= link;
      late_subject <= subject;
      head <= head_now;
      head_reading <= begin_search;
      head_read <= active && record_read && !begin_command;

      unique case (state)
        SWEEP: begin
          sweep <= sweep + 1'b1;
          if (&sweep) begin
            state <= BEGIN;
            ready <= 1'b1;
          end
        end
        BEGIN: begin
          if (begin_command) state <= COMMAND;
          else if (begin_step) state <= STEP;
          if (!begin_command && (begin_step || begin_search)) after_command <= 1'b0;
          subject <= begin_command ? cmd_id : head;
          slot <= target;
          slot_occupied <= occupied[target];
          deadline <= cmd_time;
          set_request <= cmd_set;
          step_expires <= expires;
          step_last <= record_last;
          step_base_kept <= alone ? (record_deadline <= now ? record_deadline : now) : active_base;
          if (begin_search) begin
            active <= 1'b1;
            whole <= 1'b1;
            active_slot <= {first_level, first_digit};
            active_base <= first_start;
          end
          // Nothing is due before `now`: later timers find lower places.
          if (!begin_command && !active && first_fresh && !first_due) base <= now;
        end
        COMMAND: begin
          state <= BEGIN;
          after_command <= 1'b1;
          replaced <= set_request && record_running;
        end
        default: begin
          state <= BEGIN;
          whole <= 1'b0;
          if (step_expires) begin
            m_axis_tvalid <= 1'b1;
            m_axis_id <= subject;
            m_axis_deadline <= record_deadline;
          end
          if (step_last) base <= step_base_kept;
        end
      endcase

`ifdef BUG_CALENDAR_EMPTY
      if (empties && state == STEP) occupied[emptied] <= 1'b0;
`else
      if (empties) occupied[emptied] <= 1'b0;
`endif
      if (link) occupied[slot] <= 1'b1;
      if (lose_last) begin
        active <= 1'b0;
        // A command can empty the active list after others were moved.
        if (state == COMMAND) base <= active_base;
      end

      first_fresh <= state == BEGIN;
      first_any <= |occupied;
      first_level <= lowest_level;
      first_digit <= lowest_digit;
      first_start <= lowest_start;
    end
  end

  // ---- the first list
  logic [LEVEL_BITS-1:0] lowest_level;
  logic [DIGIT_BITS-1:0] lowest_digit;
  logic [TIME_BITS-1:0] lowest_start;
  logic [RADIX-1:0] lowest_row;
  /* verilator lint_off UNUSEDSIGNAL */ // digits are wider than the time
  logic [WIDE-1:0] start_wide;
  /* verilator lint_on UNUSEDSIGNAL */
  always_comb begin
    lowest_level = '0;
    lowest_row = '0;
    for (int level = LEVELS - 1; level >= 0; level--) begin
      if (|occupied[level*RADIX+:RADIX]) begin
        lowest_level = LEVEL_BITS'(level);
        lowest_row = occupied[level*RADIX+:RADIX];
      end
    end
    lowest_digit = '0;
    for (int digit = RADIX - 1; digit >= 0; digit--) begin
      if (lowest_row[digit]) lowest_digit = DIGIT_BITS'(digit);
    end
    start_wide = WIDE'(base);
    for (int level = 0; level < LEVELS; level++) begin
      if (lowest_level == LEVEL_BITS'(level)) start_wide[level*DIGIT_BITS+:DIGIT_BITS] = lowest_digit;
      else if (lowest_level > LEVEL_BITS'(level)) start_wide[level*DIGIT_BITS+:DIGIT_BITS] = '0;
    end
    lowest_start = start_wide[TIME_BITS-1:0];
  end

  assign next_known = state == BEGIN && first_fresh && !active && !replaced;
  assign next_any = first_any;
  assign next_deadline = first_start;
endmodule

`default_nettype wire
