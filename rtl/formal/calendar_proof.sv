// Calendar of four timers, 4-bit time in two digits of two bits; any commands, any time that does not go back, any back-pressure.
// One symbolic timer (`mine`) is followed exactly, and the order of it and another one (`other`): a timer that runs expires
// exactly once unless it is cancelled or set again, never early, in the order of (deadline, order set); commands say what they did,
// and take at most four clocks (six for one that runs). Checked to a depth.

`default_nettype none

module calendar_proof (
    input wire       clk,
    input wire       rst,
    input wire [3:0] now,
    input wire       cmd_valid,
    input wire       cmd_set,
    input wire [1:0] cmd_id,
    input wire [3:0] cmd_deadline,
    input wire       m_axis_tready
);
  wire ready, cmd_ready, cmd_running, m_axis_tvalid, next_known, next_any;
  wire [1:0] m_axis_id;
  wire [3:0] m_axis_deadline, next_deadline;

  calendar #(.ID_BITS(2), .TIME_BITS(4), .DIGIT_BITS(2)) dut (
      .clk(clk), .rst(rst), .ready(ready), .now(now),
      .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_set(cmd_set), .cmd_id(cmd_id), .cmd_deadline(cmd_deadline),
      .cmd_running(cmd_running),
      .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready), .m_axis_id(m_axis_id), .m_axis_deadline(m_axis_deadline),
      .next_known(next_known), .next_any(next_any), .next_deadline(next_deadline));

  (* anyconst *) reg [1:0] mine;
  (* anyconst *) reg [1:0] other;

  // 0 mine, 1 other: whether it runs, its deadline, and whether mine was set first.
  reg [1:0] running;
  reg [3:0] deadline_mine, deadline_other;
  reg mine_first;
  reg shown;
  reg [3:0] waited;
  reg begun = 1'b0;
  wire arrives = m_axis_tvalid && !shown;
  wire taken = cmd_valid && cmd_ready;
  // Deadlines that had passed when they were set count as a later instant: of them all is checked but the order.
  reg late_mine, late_other;

  always @(posedge clk) begin
    begun <= 1'b1;
    assume (mine != other);
    if (!begun) assume (rst);
    else assume (!rst);
    if (begun) begin
      assume (now >= $past(now));
      // A command stays until it is taken.
      if ($past(cmd_valid && !cmd_ready && !rst)) begin
        assume (cmd_valid);
        assume ({cmd_set, cmd_id, cmd_deadline} == $past({cmd_set, cmd_id, cmd_deadline}));
      end
    end
    if (!ready) assume (!cmd_valid);
    if (rst) begin
      running <= 0;
      shown <= 0;
      waited <= 0;
    end else begin
      shown <= m_axis_tvalid && !m_axis_tready;
      waited <= cmd_valid && !cmd_ready ? waited + 1'b1 : 0;
      if (taken && cmd_id == mine) begin
        running[0] <= cmd_set;
        deadline_mine <= cmd_deadline;
        late_mine <= cmd_deadline < now;
        mine_first <= 1'b0;
      end
      if (taken && cmd_id == other) begin
        running[1] <= cmd_set;
        deadline_other <= cmd_deadline;
        late_other <= cmd_deadline < now;
        mine_first <= 1'b1;
      end
      if (arrives && m_axis_id == mine && !(taken && cmd_id == mine)) running[0] <= 1'b0;
      if (arrives && m_axis_id == other && !(taken && cmd_id == other)) running[1] <= 1'b0;
    end
    if (begun && !rst && ready) begin
      if (arrives) begin
        assert (m_axis_deadline <= now);
        if (m_axis_id == mine) begin
          assert (running[0]);
          assert (m_axis_deadline >= deadline_mine);
          if (!late_mine) assert (m_axis_deadline == deadline_mine);
          if (running[1] && !late_mine && !late_other) assert (deadline_mine < deadline_other || (deadline_mine == deadline_other && mine_first));
        end
      end
      if (taken && cmd_id == mine && !cmd_set) assert (cmd_running == (running[0] && !(arrives && m_axis_id == mine)));
      assert (waited < 6);
      if (taken && !(cmd_set && cmd_running)) assert (waited < 4);
      // What is known of the next deadline is a lower bound; with none, none runs.
      if (next_known && !m_axis_tvalid && running[0]) begin
        assert (next_any);
        if (!late_mine) assert (next_deadline <= deadline_mine);
      end
      cover (arrives && m_axis_id == mine && running[1] && deadline_mine == deadline_other && deadline_mine > 5);
      cover (taken && cmd_set && cmd_running && cmd_id == mine && running[1]);
      cover (taken && !cmd_set && cmd_running && cmd_id == mine && deadline_mine <= now && !late_mine);
      cover (arrives && m_axis_id == mine && late_mine);
    end
  end
endmodule
